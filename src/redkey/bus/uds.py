"""The Unix face of the bus: the main socket, and one for each open session."""

from __future__ import annotations

import asyncio
import resource
import socket
import uuid
from contextlib import suppress
from pathlib import Path

import structlog

from redkey.bus import commands
from redkey.bus.bus import Bus
from redkey.bus.connection import BusConnection
from redkey.bus.home import SOCKET, session_socket
from redkey.bus.model import SessionState
from redkey.bus.output import ConnectionOutput
from redkey.errors import CannotListen
from redkey.http.unix_sockets import BACKLOG, listen_unix, remove_unix

_log = structlog.get_logger("redkey.bus")
# At most this many sessions have their own socket at once.
_SESSION_SOCKETS = 256


class UdsFace:
    """All connections over Unix sockets. Sessions created here belong to `workspace`."""

    def __init__(self, bus: Bus, home: Path, workspace: str = "") -> None:
        self.bus, self._home, self.workspace = bus, home, workspace
        self._connections: set[BusConnection] = set()
        self._listeners: dict[str, tuple[socket.socket, Path]] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._starting: set[asyncio.Task[None]] = set()
        # Connections with output of this turn of the loop.
        self._written: list[ConnectionOutput] = []
        # The random part of a UUID, and a counter for the rest.
        self._prefix, self._count = str(uuid.uuid4())[:24].encode(), 0
        self.run = commands.run

    @property
    def _room(self) -> int:
        """How many connections are allowed: half of the open files stay free for everything else."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = self.bus.limits.connections
        return limit if soft == resource.RLIM_INFINITY else min(limit, soft // 2)

    async def start(self) -> None:
        """Listen, also on the sockets of the open sessions."""
        path = self._home / SOCKET
        self._listeners[""] = listen_unix(path, taken="bus_running"), path
        await self._serve("", None)
        self.bus.on_session(self._session_opened, self._session_closed)

    async def stop(self) -> None:
        """Remove the sockets and close every connection."""
        for task in tuple(self._starting):
            with suppress(asyncio.CancelledError):
                await task
        for key in list(self._listeners):
            self._close(key)
        for connection in tuple(self._connections):
            connection.close()

    @property
    def connections(self) -> int:
        return len(self._connections)

    def flush_later(self, connection: ConnectionOutput) -> None:
        """Flush a connection at the end of this turn of the loop; all connections share one callback."""
        if not self._written:
            asyncio.get_running_loop().call_soon(self._flush)
        self._written.append(connection)

    def _flush(self) -> None:
        connections, self._written = self._written, []
        for connection in connections:
            connection.flush()

    def admit(self, connection: BusConnection) -> bool:
        if len(self._connections) >= self._room:
            return False
        self._connections.add(connection)
        return True

    def gone(self, connection: BusConnection) -> None:
        self._connections.discard(connection)

    def new_id(self) -> bytes:
        """Give a unique id for a line of the bus; cheaper than a random one for each line."""
        self._count += 1
        return b"%b%012x" % (self._prefix, self._count)

    async def _serve(self, key: str, session_id: str | None) -> None:
        loop = asyncio.get_running_loop()
        listener, _ = self._listeners[key]
        # Repeated here, because asyncio would cut the backlog to its own default.
        self._servers[key] = await loop.create_unix_server(
            lambda: BusConnection(self, session_id), sock=listener, backlog=BACKLOG
        )

    def _session_opened(self, session: SessionState) -> None:
        if len(self._listeners) > _SESSION_SOCKETS:
            # Each socket is an open file; the rest are kept for connections. Clients then use the main socket.
            return
        path = session_socket(self._home, session.key)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if path.parent.is_symlink():
                raise CannotListen(f"{path.parent} is a symbolic link", code="not_a_socket")
            self._listeners[session.key] = listen_unix(path, taken="bus_running"), path
        except (CannotListen, OSError) as cause:
            # Its commands are accepted on the main socket.
            _log.warning(
                "a session has no socket of its own; clients use the main one", session=session.key, reason=str(cause)
            )
            return
        task = asyncio.get_running_loop().create_task(self._serve(session.key, session.key))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _session_closed(self, session: SessionState) -> None:
        self._close(session.key)

    def _close(self, key: str) -> None:
        server = self._servers.pop(key, None)
        if server is not None:
            server.close()
        listener = self._listeners.pop(key, None)
        if listener is not None:
            listener[0].close()
            remove_unix(listener[1])
            if key:
                with suppress(OSError):
                    listener[1].parent.rmdir()
