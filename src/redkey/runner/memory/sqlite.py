"""Memories in one SQLite file; compared by vectors in this process with an embedder, else by words (BM25 of FTS5).

Several runners may share the file. A writer locks a file beside it. The write-ahead log is copied into the database
only under that lock: SQLite before 3.51.3 may damage a file if another process writes during the copy. A question's
vector is compared with all vectors of the owner; their number is limited, and the oldest beyond it are deleted.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from redkey.errors import MemoryRefused
from redkey.runner.memory.port import CATCH_UP, Embedder, Memory, Owner, floor_of
from redkey.runner.memory.texts import KEPT, asked_text, kept_text, query_words
from redkey.runner.named_sql import statements

_SQL: Final = Path(__file__).with_name("statements.sql")
# How many seconds a writer waits for another; from how many bytes the log is copied.
_WAIT_SECONDS: Final = 30.0
_LOG_BYTES: Final = 1024 * 1024


class SqliteMemories:
    """Memories in a file. Thread-safe."""

    def __init__(
        self, path: Path, embedder: Embedder | None = None, *, keep: int = KEPT, floor: float | None = None
    ) -> None:
        self._embedder, self._keep, self._lock, self._path = embedder, keep, threading.Lock(), path
        self._floor = floor_of(embedder, floor)
        try:
            with _writing(path):
                self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA wal_autocheckpoint = 0")
                self._db.executescript(statements(_SQL)["schema"])
        except (sqlite3.Error, OSError) as cause:
            raise MemoryRefused(f"{path} cannot be used for memories: {cause}") from cause

    def close(self) -> None:
        self._db.close()

    def remember(self, owner: Owner, text: str, *, task_id: str = "", written_at: str = "") -> None:
        text = kept_text(text)
        row = {
            **_owned(owner),
            "task_id": task_id,
            "text": text,
            "written_at": written_at or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "embedder": self._embedder.name if self._embedder else "",
            "vector": self._embedder.embed([text])[0].tobytes() if self._embedder else None,
        }
        with self._lock, self._transaction():
            self._run("remember", row)
            self._run("forget_oldest", {**_owned(owner), "keep": self._keep})

    def recall(self, owner: Owner, about: str, limit: int = 8) -> list[Memory]:
        with self._lock:
            if self._embedder is not None:
                return self._nearest(self._embedder, owner, asked_text(about), limit)
            words = query_words(about)
            if not words:
                return []
            # Words are quoted, so none of them is read as a query operator.
            asked = {**_owned(owner), "words": " OR ".join(f'"{word}"' for word in words), "limit": limit}
            return [Memory(*row) for row in self._run("by_words", asked)]

    def _nearest(self, embedder: Embedder, owner: Owner, about: str, limit: int) -> list[Memory]:
        import numpy

        self._catch_up(embedder, owner)
        rows = self._run("vectors", {**_owned(owner), "embedder": embedder.name})
        if not rows or not about:
            return []
        matrix = numpy.frombuffer(b"".join(vector for _, vector in rows), dtype=numpy.float32).reshape(len(rows), -1)
        near = matrix @ embedder.embed([about])[0]
        best = [place for place in numpy.argsort(-near, kind="stable")[:limit] if near[place] >= self._floor]
        return [Memory(*self._run("one", {"id": rows[int(place)][0]})[0]) for place in best]

    def _catch_up(self, embedder: Embedder, owner: Owner) -> None:
        asked = {**_owned(owner), "embedder": embedder.name, "limit": CATCH_UP}
        missing = self._run("without_vector", asked)
        if not missing:
            return
        vectors = embedder.embed([text for _, text in missing])
        with self._transaction():
            for (number, _), vector in zip(missing, vectors, strict=True):
                self._run("set_vector", {"id": number, "embedder": embedder.name, "vector": vector.tobytes()})

    def _run(self, name: str, values: Mapping[str, Any]) -> list[Any]:
        try:
            return self._db.execute(statements(_SQL)[name], values).fetchall()
        except sqlite3.Error as cause:
            raise MemoryRefused(f"memories cannot be read or written: {cause}") from cause

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one transaction; afterwards copy the write-ahead log if it is long."""
        try:
            with _writing(self._path):
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
                if Path(f"{self._path}-wal").stat().st_size > _LOG_BYTES:
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (sqlite3.Error, OSError) as cause:
            raise MemoryRefused(f"memories cannot be written: {cause}") from cause


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Hold the writer lock of a memory file; TimeoutError if another process holds it for too long."""
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process has had {path}.lock for {_WAIT_SECONDS:g} seconds") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _owned(owner: Owner) -> dict[str, str]:
    return {"workspace_id": owner.workspace_id, "agent": owner.agent}
