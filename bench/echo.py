"""The yardstick of the coordination bench: the host of `redkey serve` around an application that echoes bodies.

`python -m bench.echo READY_FILE`: serves on a free port until it is asked to stop.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import uvloop

from redkey.api.host import Host, close, listen, url_of
from redkey.config import Config
from redkey.stores.durable import replace_file


class Echo:
    """Answers every request with its own body."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

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
