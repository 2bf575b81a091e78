"""The yardstick of the coordination bench: the host of `redkey serve` around an application that echoes bodies.

`python -m bench.echo READY_FILE`: serves on a free port until it is asked to stop.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvloop

from redkey.config import Config
from redkey.http.exchange import Exchange
from redkey.http.host import Host, close, listen, url_of
from redkey.http.request import read_body
from redkey.stores.durable import replace_file

_LIMIT = 1 << 20
_JSON = b"content-type: application/json\r\n"


class Echo:
    """Answers every request with its own body."""

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        body = exchange.take_whole(_LIMIT)
        if body is None:
            return self._receive(exchange)
        exchange.reply(200, _JSON, body)
        return None

    async def _receive(self, exchange: Exchange) -> None:
        exchange.reply(200, _JSON, await read_body(exchange, _LIMIT))

    async def start(self) -> None: ...

    def begin_stop(self) -> None: ...

    async def finish_stop(self) -> None: ...


def serve(ready: Path) -> None:
    """Serve until a signal asks to stop."""
    config = Config(port=0)
    sockets = listen(config)
    told = json.dumps({"url": url_of(sockets[0])}).encode()
    host = Host(Echo(), config, lambda: replace_file(ready, told, 0o600))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(host.serve(sockets))
    close(sockets)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
