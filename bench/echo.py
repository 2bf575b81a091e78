"""The yardstick of the coordination bench: the host of `redkey serve` around an application that echoes bodies.

`python -m bench.echo READY_FILE`: serves on a free port until it is asked to stop.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from redkey.config import Config
from redkey.http.exchange import Exchange
from redkey.http.host import Host, close, listen, url_of
from redkey.stores.durable import replace_file

_LIMIT = 1 << 20


class Echo:
    """Answers every request with its own body."""

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.take_whole(_LIMIT)
        if body is None:
            body, more = b"", True
            while more:
                message = await exchange.receive()
                body, more = body + message.get("body", b""), message.get("more_body", False)
        await exchange.reply(200, b"content-type: application/json\r\n", body)

    async def start(self) -> None: ...

    def begin_stop(self) -> None: ...

    async def finish_stop(self) -> None: ...


def serve(ready: Path) -> None:
    config = Config(port=0)
    sockets = listen(config)
    told = json.dumps({"url": url_of(sockets[0])}).encode()
    host = Host(Echo(), config, lambda: replace_file(ready, told, 0o600))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(host.serve(sockets))
    close(sockets)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
