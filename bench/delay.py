"""A simulated network: forwards TCP connections and delays every byte, in order.

    python -m bench.delay LISTEN_PORT TARGET_PORT MILLISECONDS

A round trip takes twice this time longer. It runs in a separate process, so that it takes no time of the event loop
that is measured.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def _hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Forward what is read, each piece when its delay has passed."""
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def send() -> None:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not piece:
                return
            writer.write(piece)
            await writer.drain()

    sender = asyncio.ensure_future(send())
    with suppress(OSError):
        while piece := await reader.read(1 << 16):
            pieces.put_nowait((loop.time() + seconds, piece))
    pieces.put_nowait((loop.time() + seconds, b""))
    with suppress(OSError):
        await sender
    writer.close()


async def forward(listen: int, target: int, seconds: float) -> None:
    """Forward until the process is ended."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(_hold(reader, out, seconds), _hold(there, writer, seconds))

    server = await asyncio.start_server(accept, "127.0.0.1", listen)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
