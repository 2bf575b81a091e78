"""What fsck asks of whoever holds a data directory that may be damaged: everything, and nothing believed.

A `Reader` gives what a sound store gives. Evidence gives also what a sound store never shows: records that cannot
be read, tiles that should not be there, index entries that are missing. It is one moment of the store, for reading
only. A store gives it by `Place.inspect` of `redkey.stores.opening`.
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
    """A record that is there and cannot be read."""

    sequence: int
    why: str


class Body(msgspec.Struct, frozen=True, gc=False):
    """A body as it is stored: what it is said to be, and what it is. `found` is None when a file is missing."""

    sha256: str
    size: int
    pinned: bool
    erased: bool
    found: tuple[int, str] | None


class Misplaced(msgspec.Struct, frozen=True, gc=False):
    """An entry of the event index that is not as its record says: missing, or there without reason."""

    sequence: int
    subject: str
    missing: bool


class Evidence(Reader, Protocol):
    """One moment of a data directory, damaged or not."""

    def complaints(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the store as a whole, before anything in it is looked at: (code, sentence)."""
        ...

    def settings(self) -> Mapping[str, str]: ...

    def last_sequence(self, topic: str) -> int:
        """The highest sequence that anything tells of, when the head itself cannot be read."""
        ...

    def stored(self, topic: str) -> Iterator[Sequence[Stored | Unreadable]]:
        """All records in order, in batches; those on damaged pages as far as they can be told."""
        ...

    def tile_counts(self, topic: str) -> Mapping[int, int]:
        """How many tiles there are by level."""
        ...

    def checkpoints_up(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """All signed checkpoints, smallest first."""
        ...

    def bodies(self, topic: str) -> Iterator[Body]: ...

    def body_facts(self, topic: str, sha256: str) -> tuple[int, bool] | None:
        """How long the body of this name is, or was, and whether it was erased; None when there never was one."""
        ...

    def unnamed_files(self) -> Iterator[str]:
        """Files among the content that no body names and no unfinished unit marks."""
        ...

    def placed(self, topic: str, kind: str, key: str) -> tuple[int, Row] | None:
        """A row with the number of its place, which is small and its own."""
        ...

    def places(self, topic: str) -> Iterator[tuple[int, str, str]]:
        """(place, kind, key) of every row."""
        ...

    @property
    def indexes_keys(self) -> bool:
        """False for the first format, whose event index does not have the idempotency keys of requests."""
        ...

    def index_size(self) -> int:
        """How many entries the event index has, of all topics."""
        ...

    def index_complete(self, sequence: int) -> int:
        """Up to which sequence the event index speaks when a topic ends at this one."""
        ...

    def missing_entries(self, topic: str) -> Iterator[Misplaced]: ...

    def extra_entries(self, topic: str) -> Iterator[Misplaced]: ...

    def repeated_wires(self) -> Iterator[str]:
        """Wire ids that stand in the index more than once."""
        ...

    def outside(self, topic: str) -> bytes | None:
        """The checkpoint in force outside the database."""
        ...

    def outside_now(self, topic: str) -> bytes | None:
        """The checkpoint that is in force outside by now: a store in use goes on after the moment that is checked."""
        ...

    def outside_coming(self, topic: str) -> bool:
        """True when one was being put in force, or the process died while it was."""
        ...

    def outside_topics(self) -> Sequence[str]: ...
