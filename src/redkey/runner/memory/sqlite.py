"""Memories in one SQLite file: by vectors in this process when there is an embedder, else by words (BM25 of FTS5).

Several runners may share the file. A writer holds a lock on a file beside it, and the write-ahead log is copied into
the database under that lock only: SQLite before 3.51.3 may damage a file whose log is copied while another writes.
Vectors are compared with all of an owner's, which are bounded: the oldest memories beyond the bound are forgotten.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from redkey.errors import MemoryRefused
from redkey.runner.memory.port import Embedder, Memory, Owner

_KEPT: Final = 20_000
_TEXT_CHARACTERS: Final = 8000
_WORDS: Final = 48
# How many memories that were written without vectors get theirs with one recall.
_CATCH_UP: Final = 256
# How long a writer waits for another; the log is copied once it has this many bytes.
_WAIT_SECONDS: Final = 30.0
_LOG_BYTES: Final = 1024 * 1024
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def _statements() -> Mapping[str, str]:
    parts = _NAMED.split(Path(__file__).with_name("statements.sql").read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class SqliteMemories:
    """Memories in a file; threads may share it."""

    def __init__(self, path: Path, embedder: Embedder | None = None, *, keep: int = _KEPT) -> None:
        self._embedder, self._keep, self._lock, self._path = embedder, keep, threading.Lock(), path
        try:
            with _writing(path):
                self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA wal_autocheckpoint = 0")
                self._db.executescript(_statements()["schema"])
        except (sqlite3.Error, OSError) as cause:
            raise MemoryRefused(f"{path} cannot be used for memories: {cause}") from cause

    def close(self) -> None:
        self._db.close()

    def remember(self, owner: Owner, text: str, *, task_id: str = "", written_at: str = "") -> None:
        text = text.strip()[:_TEXT_CHARACTERS]
        if not text:
            raise MemoryRefused("there is nothing to remember", code="memory_empty")
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
                return self._nearest(self._embedder, owner, about[:_TEXT_CHARACTERS], limit)
            words = list(dict.fromkeys(_WORD.findall(about.lower())))[:_WORDS]
            if not words:
                return []
            # Quoted, so that no word of a text is an operator of the query.
            asked = {**_owned(owner), "words": " OR ".join(f'"{word}"' for word in words), "limit": limit}
            return [Memory(*row) for row in self._run("by_words", asked)]

    def _nearest(self, embedder: Embedder, owner: Owner, about: str, limit: int) -> list[Memory]:
        import numpy

        self._catch_up(embedder, owner)
        rows = self._run("vectors", {**_owned(owner), "embedder": embedder.name})
        if not rows or not about.strip():
            return []
        matrix = numpy.frombuffer(b"".join(vector for _, vector in rows), dtype=numpy.float32).reshape(len(rows), -1)
        near = matrix @ embedder.embed([about])[0]
        best = numpy.argsort(-near, kind="stable")[:limit]
        return [Memory(*self._run("one", {"id": rows[int(place)][0]})[0]) for place in best]

    def _catch_up(self, embedder: Embedder, owner: Owner) -> None:
        asked = {**_owned(owner), "embedder": embedder.name, "limit": _CATCH_UP}
        missing = self._run("without_vector", asked)
        if not missing:
            return
        vectors = embedder.embed([text for _, text in missing])
        with self._transaction():
            for (number, _), vector in zip(missing, vectors, strict=True):
                self._run("set_vector", {"id": number, "embedder": embedder.name, "vector": vector.tobytes()})

    def _run(self, name: str, values: Mapping[str, Any]) -> list[Any]:
        try:
            return self._db.execute(_statements()[name], values).fetchall()
        except sqlite3.Error as cause:
            raise MemoryRefused(f"memories cannot be read or written: {cause}") from cause

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing, and the log copied when it has become long."""
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
    """Hold the writer lock of a file of memories; TimeoutError when another keeps it for too long."""
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
