"""Memories in PostgreSQL, shared by runners on several machines; compared by pgvector with an embedder, else by words.

The tables are in their own schema `redkey_memory`, so a runner needs no right on the ledger. The first runner creates
them. Each call reconnects once if the connection was lost.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redkey.errors import MemoryRefused
from redkey.runner.memory.port import CATCH_UP, Embedder, Memory, Owner, floor_of
from redkey.runner.memory.texts import KEPT, asked_text, kept_text, query_words
from redkey.runner.named_sql import statements

if TYPE_CHECKING:
    import psycopg

_SQL: Final = Path(__file__).with_name("postgres.sql")
_CONNECT_SECONDS: Final = 10
# The timeout of one statement, including waits for locks.
_STATEMENT_SECONDS: Final = 30

T = TypeVar("T")


class PostgresMemories:
    """Memories in a database. Thread-safe."""

    def __init__(
        self, url: str, embedder: Embedder | None = None, *, keep: int = KEPT, floor: float | None = None
    ) -> None:
        try:
            import psycopg
        except ImportError as cause:
            text = "psycopg is not installed: pip install 'redkey[postgres]'"
            raise MemoryRefused(text, code="memory_driver_missing") from cause
        self._errors, self._operational = psycopg.Error, psycopg.OperationalError
        self._url, self._embedder, self._keep = url, embedder, keep
        self._floor = floor_of(embedder, floor)
        self._lock = threading.Lock()
        self._db: psycopg.Connection[Any] | None = None
        self._vector_schema = ""
        try:
            self._call("opened", self._prepare)
        except BaseException:
            self._disconnect()
            raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._disconnect()

    def remember(self, owner: Owner, text: str, *, task_id: str = "", written_at: str = "") -> None:
        """Store a text for its owner, and delete the oldest memories beyond the limit."""
        text = kept_text(text)
        digest = hashlib.sha256(text.encode()).digest()
        row = {
            **_owned(owner),
            "task_id": asked_text(task_id),
            "text": text,
            "sha256": digest,
            "written_at": written_at,
        }
        vector = _vector(self._embedder.embed([text])[0]) if self._embedder else ""

        def store() -> None:
            [(number,)] = self._run("remember", row)
            if self._embedder:
                self._run("set_vector", {"id": number, "embedder": self._embedder.name, "vector": vector})
            self._run("forget_oldest", {**_owned(owner), "keep": self._keep})

        self._call("written", store)

    def recall(self, owner: Owner, about: str, limit: int = 8) -> list[Memory]:
        """Return the owner's memories nearest to a text, nearest first, without those below the relevance floor."""
        if self._embedder is None:
            words = query_words(about)
            # Words are quoted, so none of them is read as a query operator.
            asked = {**_owned(owner), "words": " | ".join(f"'{word}'" for word in words), "limit": limit}
            return self._call("read", lambda: self._memories("by_words", asked)) if words else []
        about = asked_text(about)
        if not about:
            return []
        self._catch_up(self._embedder, owner)
        near = {
            **_owned(owner),
            "embedder": self._embedder.name,
            "vector": _vector(self._embedder.embed([about])[0]),
            "distance": 1.0 - self._floor,
            "limit": limit,
        }
        return self._call("read", lambda: self._memories("nearest", near))

    def _catch_up(self, embedder: Embedder, owner: Owner) -> None:
        asked = {**_owned(owner), "embedder": embedder.name, "limit": CATCH_UP}
        missing = self._call("read", lambda: self._run("without_vector", asked))
        if not missing:
            return
        vectors = embedder.embed([text for _, text in missing])

        def store() -> None:
            for (number, _), vector in zip(missing, vectors, strict=True):
                self._run("set_vector", {"id": number, "embedder": embedder.name, "vector": _vector(vector)})

        self._call("written", store)

    def _memories(self, name: str, values: Mapping[str, Any]) -> list[Memory]:
        return [Memory(*row) for row in self._run(name, values)]

    def _prepare(self) -> None:
        """Create missing tables. A role without that right uses the existing ones."""
        [(has_memories, has_vectors)] = self._run("exists")
        if not has_memories or (self._embedder and not has_vectors):
            self._run("lock_schema")
            if not has_memories:
                self._run("schema")
            if self._embedder:
                self._run("extension")
        if not self._embedder:
            return
        [(self._vector_schema,)] = self._run("extension_schema")
        if not has_vectors:
            self._run("vector_schema")

    def _call(self, what: str, work: Callable[[], T]) -> T:
        """Run one transaction, and once more if the connection was lost or it conflicted with another one.

        Every transaction here may run twice: storing a memory again changes nothing.
        """
        with self._lock:
            try:
                try:
                    return self._transact(work)
                except self._operational:
                    if self._db is not None and self._db.broken:
                        self._disconnect()
                    return self._transact(work)
            except self._errors as cause:
                raise _refused(what, cause) from cause

    def _transact(self, work: Callable[[], T]) -> T:
        connection = self._connection()
        with connection.transaction():
            connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
            return work()

    def _connection(self) -> psycopg.Connection[Any]:
        if self._db is None or self._db.closed:
            import psycopg

            self._db = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                tcp_user_timeout=_STATEMENT_SECONDS * 1000,
                # With a pooler each transaction may get another session, without its prepared statements.
                prepare_threshold=None,
            )
        return self._db

    def _disconnect(self) -> None:
        if self._db is not None:
            with suppress(self._errors):
                self._db.close()
            self._db = None

    def _run(self, name: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        from psycopg import sql

        statement = sql.SQL(statements(_SQL)[name])
        # Without pgvector there is no embedder, and statements with this schema are never run.
        cursor = self._connection().execute(statement.format(vector=sql.Identifier(self._vector_schema or "x")), values)
        return cursor.fetchall() if cursor.description else []


def _refused(what: str, cause: psycopg.Error) -> MemoryRefused:
    """Build an error of one line with the next step; it may name the host, never the password."""
    import psycopg.errors as known

    first = str(cause).strip().partition("\n")[0] or type(cause).__name__
    if isinstance(cause, known.ProgrammingError) and cause.sqlstate is None:
        # libpq quotes the unreadable part of the URL, which may be the password.
        first = "the address is not a PostgreSQL URL; write postgresql://USER@HOST:PORT/DATABASE"
    if isinstance(cause, known.FeatureNotSupported | known.UndefinedFile):
        step = "; install pgvector on the database server, or recall by words: --memory words"
    elif isinstance(cause, known.InsufficientPrivilege):
        step = "; start a runner once as the database's owner, then grant the schema redkey_memory to this role"
    else:
        step = ""
    return MemoryRefused(f"memories in PostgreSQL cannot be {what}: {first}{step}")


def _vector(numbers: Any) -> str:
    return "[" + ",".join(map(repr, numbers.tolist())) + "]"


def _owned(owner: Owner) -> dict[str, str]:
    return {"workspace_id": owner.workspace_id, "agent": owner.agent}
