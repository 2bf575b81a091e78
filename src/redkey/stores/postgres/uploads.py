"""Bodies on their way in: small ones in memory, large ones as staged pieces in the database until a unit adopts them.

Each piece is a statement of its own, outside of any unit: a large body would hold the lock of its topic for as long as
it travels. What stays without a unit, because its server died, is deleted a day later.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import psycopg.errors

from redkey.errors import StoreMisused
from redkey.stores.postgres.schema import SQL

# Bodies up to here come with their unit.
INLINE_BYTES = 16 * 1024
PIECE_BYTES = 1024 * 1024

# Runs one statement by itself.
Run = Callable[[str, Any], list[Any]]


class PostgresUpload:
    """One body that is being received; use it from one thread at a time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._hash = sha256()
        self._pending = bytearray()
        self._pieces = 0
        self.finished = False
        self.size = 0
        # The staged body; None while it is small.
        self.staged: UUID | None = None

    def write(self, chunk: bytes) -> None:
        """Append the next bytes."""
        if self.finished:
            raise StoreMisused("the body is complete", code="upload_ended")
        self._hash.update(chunk)
        self.size += len(chunk)
        self._pending += chunk
        while len(self._pending) >= PIECE_BYTES:
            self._stage(PIECE_BYTES)

    def finish(self) -> str:
        """End the upload and return the hash of its bytes."""
        self.finished = True
        if self._pending and (self.staged is not None or self.size > INLINE_BYTES):
            self._stage(len(self._pending))
        return self._hash.hexdigest()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def data(self) -> bytes:
        """The body, if it is small."""
        return bytes(self._pending)

    def discard(self) -> None:
        """Delete the body, unless a unit has adopted it. A second call does nothing."""
        self.finished = True
        self._pending.clear()
        staged, self.staged = self.staged, None
        if staged is not None:
            try:
                self._run(SQL["delete_upload"], (staged,))
            except psycopg.errors.ForeignKeyViolation:
                # A unit that ended just now has adopted it.
                return

    def _stage(self, size: int) -> None:
        if self.staged is None:
            staged = uuid4()
            self._run(SQL["begin_upload"], (staged,))
            self.staged = staged
        piece = bytes(self._pending[:size])
        del self._pending[:size]
        self._run(SQL["put_piece"], {"upload": self.staged, "number": self._pieces, "data": piece})
        self._pieces += 1
