"""Commits of others: announced by NOTIFY, and found by a poll that compares heads.

Each server announces its commits outside of its units, at most every ten milliseconds: a NOTIFY in a unit would take a
lock over the whole cluster until the unit is durable. A notice that is lost is found by the poll. Behind a pooler
LISTEN does nothing; then the poll is the only way, and it comes more often.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
import structlog

from redkey.errors import StoreError
from redkey.stores.postgres.connections import Connection, Connections
from redkey.stores.postgres.failures import translated
from redkey.stores.postgres.schema import SQL
from redkey.stores.postgres.servers import Servers

# How often heads are compared: behind a pooler, and where notices come.
POLL_SECONDS, NET_SECONDS = 0.25, 1.0
# The pause between two announcements; a notice has at most 8,000 bytes.
_PAUSE_SECONDS = 0.01
_NOTICE_BYTES = 7000
_RETRY_SECONDS = 0.5
_LISTEN = "LISTEN redkey"
_log = structlog.get_logger("redkey.stores")

# Called with a topic and a head that somebody has committed.
Learn = Callable[[str, int], None]


class Announcer:
    """Two threads of one store: one tells the others of its commits, one learns of theirs."""

    def __init__(
        self, connections: Connections, learn: Learn, watched: Callable[[], list[str]], servers: Servers
    ) -> None:
        """`watched` lists the topics whose heads are compared; `servers` is renewed in passing."""
        self._connections, self._learn, self._watched, self._servers = connections, learn, watched, servers
        self._name = secrets.token_hex(8)
        self._ready = threading.Condition()
        self._pending: dict[str, int] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"redkey-{name}", daemon=True)
            for name, target in (("tell", self._tell), ("learn", self._hear))
        ]
        for thread in self._threads:
            thread.start()

    def announce(self, topic: str, head: int) -> None:
        """Let the other servers know of a commit, soon."""
        with self._ready:
            self._pending[topic] = head
            self._ready.notify()

    def close(self) -> None:
        """End both threads and wait for them."""
        with self._ready:
            self._stop.set()
            self._ready.notify_all()
        with suppress(StoreError, psycopg.Error):
            # A notice of its own ends the wait of the thread that listens.
            self._connections.fetch(SQL["notify"], (self._name,))
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _tell(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._pending or self._stop.is_set())
                if not self._pending:
                    return
                pending, self._pending = self._pending, {}
            # Without it the others find the commit when they next compare heads.
            with suppress(StoreError, psycopg.Error):
                for notice in self._notices(pending):
                    self._connections.fetch(SQL["notify"], (notice,))
            self._stop.wait(_PAUSE_SECONDS)

    def _notices(self, heads: dict[str, int]) -> list[str]:
        notices, parts, size = [], [self._name], 0
        for topic, head in heads.items():
            part = f"{topic}:{head}"
            if size + len(part) > _NOTICE_BYTES:
                notices.append(",".join(parts))
                parts, size = [self._name], 0
            parts.append(part)
            size += len(part) + 1
        return [*notices, ",".join(parts)]

    def _hear(self) -> None:
        """Listen, and compare heads; after a lost connection both begin anew, so nothing is missed."""
        while not self._stop.is_set():
            try:
                connection = self._connections.connect()
            except StoreError:
                self._stop.wait(_RETRY_SECONDS)
                continue
            try:
                with translated():
                    if not self._connections.is_pooled:
                        connection.execute(_LISTEN)
                    self._listen(connection)
                    self._servers.leave(connection)
            except (StoreError, psycopg.Error) as lost:
                # Whatever it was: the thread goes on, or this server would not learn of any commit again.
                self._connections.is_down = isinstance(lost, StoreError)
                if not self._stop.is_set():
                    _log.warning("the connection that listens was lost", reason=str(lost))
                    self._stop.wait(_RETRY_SECONDS)
            finally:
                connection.close()

    def _listen(self, connection: Connection) -> None:
        every = POLL_SECONDS if self._connections.is_pooled else NET_SECONDS
        looked = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now - looked >= every:
                looked = now
                if watched := self._watched():
                    for topic, head in connection.execute(SQL["heads"], (watched,)).fetchall():
                        self._learn(topic, head)
                self._servers.renew(connection)
            if self._connections.is_pooled:
                self._stop.wait(every)
                continue
            for notice in connection.notifies(timeout=max(0.0, looked + every - now)):
                self._take(notice.payload)
                if self._stop.is_set():
                    return

    def _take(self, payload: str) -> None:
        name, *parts = payload.split(",")
        if name == self._name:
            return
        for part in parts:
            topic, _, head = part.rpartition(":")
            if topic and head.isdigit():
                self._learn(topic, int(head))
