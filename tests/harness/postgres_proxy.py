"""A proxy before PostgreSQL that delays messages and cuts connections at their COMMIT, as a network may.

It runs in a thread of its own and reads what clients send, message by message: a COMMIT is found also where it was
prepared under a name. A cut happens before the COMMIT arrives, after it arrived, or leaves PostgreSQL with an open
connection whose client is gone.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

Cut = str
CUTS: tuple[Cut, ...] = ("before", "after", "hanging")


class Proxy:
    """Listens on the loopback and forwards to the Unix socket of a cluster."""

    def __init__(self, target: Path, *, seed: int = 1, tls: Any = None) -> None:
        self.target, self._random, self._tls = target, Random(seed), tls
        # What goes wrong: the chance of a cut at each COMMIT, the cut of the next one, the delay of each message.
        self.chance = 0.0
        self.next: Cut | None = None
        self.delay_seconds = 0.0
        # Bytes of the database's answers that are replaced, of the same length.
        self.replaced = (b"", b"")
        # Nobody gets through, as while a machine is gone.
        self.closed = False
        self.commits = 0
        self.cuts: dict[Cut, int] = dict.fromkeys(CUTS, 0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def url(self, database: str, **options: str) -> str:
        """The address of a database through the proxy."""
        # Messages of a start without TLS: what the proxy reads.
        plain = {} if self._tls is not None else {"sslmode": "disable"}
        query = "&".join(f"{name}={value}" for name, value in {"gssencmode": "disable", **plain, **options}.items())
        return f"postgresql://redkey@127.0.0.1:{self.port}/{database}?{query}"

    def cut_all(self) -> None:
        """Cut every connection now."""
        asyncio.run_coroutine_threadsafe(self._cut_all(), self._loop).result(60)

    def stop(self) -> None:
        """Cut what is open and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._listener))
        self._loop.run_forever()
        server.close()
        self.closed = True
        self._loop.run_until_complete(self._cut_all())
        # Connections that were accepted last are not served yet: they end by themselves, because the proxy is closed.
        for _ in range(10):
            if tasks := asyncio.all_tasks(self._loop):
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=1))
            # Sockets are closed in the turn after their connections were cut.
            self._loop.run_until_complete(asyncio.sleep(0))

    async def _cut_all(self) -> None:
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await _Session(self, reader, writer).run()
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    def draw(self) -> Cut | None:
        """Whether the COMMIT that has come is cut, and how."""
        self.commits += 1
        cut, self.next = self.next, None
        if cut is None and self._random.random() < self.chance:
            # A hanging one costs seconds: fewer of them.
            cut = self._random.choice(("before", "after") * 10 + ("hanging",))
        if cut is not None:
            self.cuts[cut] += 1
        return cut


class _Session:
    """One connection of a client and the one to PostgreSQL."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        self._commits: set[bytes] = set()

    async def run(self) -> None:
        if self._proxy.closed:
            return
        if self._proxy._tls is not None:
            await self._begin_tls(self._proxy._tls)
        inner, outer = await asyncio.open_unix_connection(str(self._proxy.target))
        back = asyncio.ensure_future(self._answers(inner))
        forth = asyncio.ensure_future(self._requests(outer))
        try:
            await asyncio.wait((back, forth), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First of all: whatever waits here may be cancelled by a cut, and the connection would stay open.
            outer.transport.abort()
            for task in (back, forth):
                task.cancel()
            await asyncio.gather(back, forth, return_exceptions=True)

    async def _begin_tls(self, context: Any) -> None:
        """Answer an SSLRequest with S and speak TLS from there on; a client that asks for no TLS is cut."""
        request = await self._reader.readexactly(8)
        if request[4:] != (80877103).to_bytes(4, "big"):
            raise OSError("no TLS")
        self._writer.write(b"S")
        await self._writer.start_tls(context)

    async def _answers(self, inner: asyncio.StreamReader) -> None:
        while data := await inner.read(65536):
            if self._proxy.delay_seconds:
                await asyncio.sleep(self._proxy.delay_seconds)
            self._writer.write(data.replace(*self._proxy.replaced) if self._proxy.replaced[0] else data)
            await self._writer.drain()

    async def _requests(self, outer: asyncio.StreamWriter) -> None:
        head = await self._reader.readexactly(4)
        outer.write(head + await self._reader.readexactly(int.from_bytes(head, "big") - 4))
        while True:
            head = await self._reader.readexactly(5)
            body = await self._reader.readexactly(int.from_bytes(head[1:], "big") - 4)
            cut = self._proxy.draw() if self._is_commit(head[:1], body) else None
            if cut == "before":
                raise OSError("cut before the COMMIT")
            if cut == "hanging":
                # PostgreSQL keeps the transaction open: it does not know that the client is gone.
                self._writer.transport.abort()
                await asyncio.sleep(30)
            outer.write(head + body)
            if cut == "after":
                # The rest of the pipeline: Execute and Sync; PostgreSQL commits, and no one hears of it.
                await self._finish_commit(outer)
                raise OSError("cut after the COMMIT")
            await outer.drain()

    async def _finish_commit(self, outer: asyncio.StreamWriter) -> None:
        """Forward up to the Sync without letting the client see an answer, and give PostgreSQL time to commit."""
        self._writer.transport.abort()
        rest = b"D\0\0\0\6P\0" + b"E\0\0\0\x09\0\0\0\0\0" + b"S\0\0\0\4"
        outer.write(rest)
        await outer.drain()
        await asyncio.sleep(0.2)

    def _is_commit(self, kind: bytes, body: bytes) -> bool:
        """A Parse of COMMIT declares it, a Bind runs it."""
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            (self._commits.add if query == b"COMMIT" else self._commits.discard)(name)
        return kind == b"B" and body.split(b"\0", 2)[1] in self._commits
