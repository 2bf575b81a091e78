"""Known ids: a table of bits that says which record ids a session cannot contain, to save a query for each message.

Nearly every message has a new id, and proving that by a query costs more than the rest of the work for a message. Each
hash has one bit: if it is not set, the id is new; if it is set, the log must be queried. A full table makes the bus
slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

_BITS = 1 << 25
_MASK = _BITS - 1


class KnownIds:
    """The record ids of covered sessions; for any other session every id may exist."""

    def __init__(self) -> None:
        # The system allocates the pages on first write.
        self._table = bytearray(_BITS >> 3)
        self._covered: set[int] = set()

    def cover(self, session: int, ids: Iterable[str] = ()) -> None:
        """Cover a session from now on; `ids` are all ids that it contains."""
        for record_id in ids:
            self.add(session, record_id)
        self._covered.add(session)

    def forget(self, session: int) -> None:
        """Stop covering a session."""
        self._covered.discard(session)

    def add(self, session: int, record_id: str) -> None:
        """Mark an id as used."""
        place = hash((session, record_id)) & _MASK
        self._table[place >> 3] |= 1 << (place & 7)

    def may_contain(self, session: int, record_id: str) -> bool:
        """False only if a session certainly does not contain an id."""
        place = hash((session, record_id)) & _MASK
        return session not in self._covered or bool(self._table[place >> 3] & 1 << (place & 7))
