"""Memories in one SQLite file: by vectors in this process when there is an embedder, else by words (BM25 of FTS5).

Several runners may share the file. Vectors are compared with all of an owner's, which are bounded: the oldest memories
beyond the bound are forgotten.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Mapping
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
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def _statements() -> Mapping[str, str]:
    parts = _NAMED.split(Path(__file__).with_name("statements.sql").read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class SqliteMemories:
    """Memories in a file; threads may share it."""

    def __init__(self, path: Path, embedder: Embedder | None = None, *, keep: int = _KEPT) -> None:
        self._embedder, self._keep, self._lock = embedder, keep, threading.Lock()
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(_statements()["schema"])
        except sqlite3.Error as cause:
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

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    """All of it or nothing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _owned(owner: Owner) -> dict[str, str]:
    return {"workspace_id": owner.workspace_id, "agent": owner.agent}
