"""The yardstick of the bus bench: asyncio on uvloop, newline-delimited JSON, each line read and sent back.

`python -m bench.bus_echo SOCKET`. A line with `listen` makes its connection a listener, one with `all` goes to them.
"""

from __future__ import annotations

import asyncio
import sys

import orjson
import uvloop


class Echo(asyncio.Protocol):
    """One connection."""

    listeners: set[asyncio.Transport] = set()  # noqa: RUF012

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport, self._rest = transport, b""

    def connection_lost(self, exc: Exception | None) -> None:
        self.listeners.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            value = orjson.loads(line)
            answer = orjson.dumps(value) + b"\n"
            if "listen" in value:
                self.listeners.add(self._transport)
                continue
            if "all" in value:
                for listener in self.listeners:
                    listener.write(answer)
            self._transport.write(answer)


async def _serve(path: str) -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, path)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
