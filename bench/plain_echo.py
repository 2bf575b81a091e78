"""A plain httptools protocol that answers every request with its own body: the lowest cost of HTTP in Python.

`python -m bench.plain_echo READY_FILE`: serves on a free port until it is asked to stop. It has no limits, no deadlines
and no order of answers; `echo` is the same behind RedKey's own connection.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import httptools
import uvloop


class PlainEcho(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = transport.write  # type: ignore[attr-defined]
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    # Called by the parser.

    def on_message_begin(self) -> None:
        self._body = b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._write(head % len(self._body) + self._body)


async def serve(ready: Path) -> None:
    """Serve until a signal asks to stop."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(PlainEcho, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    # Renamed into place, so that a reader never sees half of the file.
    half = ready.with_suffix(".half")
    half.write_text(json.dumps({"url": url}))
    half.rename(ready)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Path(sys.argv[1])))
