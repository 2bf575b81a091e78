"""What a unit is about to read, for stores where each read is a round trip."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Prefetch(msgspec.Struct, frozen=True):
    """What a unit is about to read: a store across a network reads it in one round trip."""

    # (kind, key) of rows, hashes of small content, and names of counters.
    rows: Sequence[tuple[str, str]] = ()
    contents: Sequence[str] = ()
    counters: Sequence[str] = ()
    # (kind, list, limit) of lists from their beginning.
    lists: Sequence[tuple[str, str, int]] = ()
    # Subjects whose newest records are read, at most this number of each.
    subjects: Sequence[str] = ()
    newest: int = 0
