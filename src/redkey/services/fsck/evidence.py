"""What fsck reads from a data directory that may be damaged. It trusts none of it.

A `Reader` gives what an intact store gives. Evidence also gives what an intact store never shows: records that cannot
be read, tiles that should not exist, missing index entries. It is one moment of the store, read-only. A store opens it
by `Place.inspect` of `redkey.stores.opening`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from redkey.ledger.ports import Reader, Row
from redkey.ledger.record import Record


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A record as it is stored, with the ids under which the event index must find it."""

    record: Record
    wire_id: str
    subjects: tuple[str, ...]


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """A record that exists and cannot be read."""

    sequence: int
    why: str


class Body(msgspec.Struct, frozen=True, gc=False):
    """A body as it is stored: its recorded size, and the bytes found. `found` is None if a file is missing."""

    sha256: str
    size: int
    pinned: bool
    erased: bool
    found: tuple[int, str] | None


class Misplaced(msgspec.Struct, frozen=True, gc=False):
    """An entry of the event index that does not match its record: missing, or without a reason."""

    sequence: int
    subject: str
    missing: bool


class Evidence(Reader, Protocol):
    """One moment of a data directory, damaged or not."""

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the store as a whole, before anything in it is read: (code, sentence)."""
        ...

    def settings(self) -> Mapping[str, str]: ...

    def last_sequence(self, topic: str) -> int:
        """Return the highest sequence that anything mentions, if the head itself cannot be read."""
        ...

    def stored(self, topic: str) -> Iterator[Sequence[Stored | Unreadable]]:
        """Yield all records in order, in batches; those on damaged pages as far as they can be found."""
        ...

    def tile_counts(self, topic: str) -> Mapping[int, int]:
        """Return how many tiles there are by level."""
        ...

    def checkpoints_up(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """Yield all signed checkpoints, smallest first."""
        ...

    def bodies(self, topic: str) -> Iterator[Body]: ...

    def body_facts(self, topic: str, sha256: str) -> tuple[int, bool] | None:
        """Return the size of the body with this hash, and whether it was erased; None if there never was one."""
        ...

    def unnamed_files(self) -> Iterator[str]:
        """Yield files among the content that belong to no body and to no unfinished unit."""
        ...

    def placed(self, topic: str, kind: str, key: str) -> tuple[int, Row] | None:
        """Return a row and the number of its place, which is small and unique."""
        ...

    def places(self, topic: str) -> Iterator[tuple[int, str, str]]:
        """Yield (place, kind, key) of every row."""
        ...

    @property
    def indexes_keys(self) -> bool:
        """False for the first format, whose event index lacks the idempotency keys of requests."""
        ...

    def index_size(self) -> int:
        """Return how many entries the event index has, of all topics."""
        ...

    def index_complete(self, sequence: int) -> int:
        """Return the sequence up to which the event index is complete for a topic that ends at this one."""
        ...

    def missing_entries(self, topic: str) -> Iterator[Misplaced]: ...

    def extra_entries(self, topic: str) -> Iterator[Misplaced]: ...

    def repeated_wires(self) -> Iterator[str]:
        """Yield wire ids that are in the index more than once."""
        ...

    @property
    def has_outside(self) -> bool:
        """True if checkpoints are also kept outside the database."""
        ...

    def outside(self, topic: str) -> bytes | None:
        """Return the checkpoint in force outside the database."""
        ...

    def outside_now(self, topic: str) -> bytes | None:
        """Return the checkpoint in force outside now: a store in use continues after the moment that is checked."""
        ...

    def outside_coming(self, topic: str) -> bool:
        """True if one was being written there, or the process died while it was."""
        ...

    def outside_topics(self) -> Sequence[str]: ...
