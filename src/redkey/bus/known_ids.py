"""Known ids: which ids a session may hold, so that a new one needs no look at the log.

Nearly every message has an id that its session does not hold yet, and proving that by a query costs more than anything
else that is done for a message. One bit for each hash answers it: a bit that is not set means that the id is new, one
that is set means that the log must be asked. A full table makes the bus slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable

_BITS = 1 << 25
_MASK = _BITS - 1


class KnownIds:
    """The ids of the records of sessions that are covered; of others nothing is known."""

    def __init__(self) -> None:
        # The system gives the pages of this as they are first written to.
        self._table = bytearray(_BITS >> 3)
        self._covered: set[int] = set()

    def cover(self, session: int, ids: Iterable[str] = ()) -> None:
        """Know a session from now on; `ids` are all those it holds already."""
        for record_id in ids:
            self.add(session, record_id)
        self._covered.add(session)

    def forget(self, session: int) -> None:
        self._covered.discard(session)

    def add(self, session: int, record_id: str) -> None:
        place = hash((session, record_id)) & _MASK
        self._table[place >> 3] |= 1 << (place & 7)

    def may_hold(self, session: int, record_id: str) -> bool:
        """False when a session does not hold an id for sure."""
        place = hash((session, record_id)) & _MASK
        return session not in self._covered or bool(self._table[place >> 3] & 1 << (place & 7))
