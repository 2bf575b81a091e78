"""What became of a submission: its records, or an answer that nothing records."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.wire.decode import decode

# A request and all that follows from it stand together; no request has more consequences than this.
_CLOSURE_LIMIT = 10_000


class Settled(msgspec.Struct, gc=False):
    """One wire at its place, and why it is void if it is."""

    wire: dict[str, Any]
    sequence: int
    timestamp: int
    void: str | None = None


class Outcome(msgspec.Struct):
    """The records of a submission, in order; `next` is the claim that came with a completion."""

    records: list[Settled] = []
    answer: dict[str, Any] | None = None
    next: Outcome | None = None
    repeated: bool = False

    def first(self, *types: str) -> Settled | None:
        """The first record of one of these types."""
        return next((settled for settled in self.records if settled.wire["type"] in types), None)


def settled(record: Record) -> Settled:
    """A record of the ledger as an outcome shows it."""
    return Settled(decode(record.wire), record.sequence, record.timestamp)


def closure(reader: Reader, topic: str, sequence: int) -> list[Settled]:
    """A recorded request and everything that followed from it, read from the ledger again."""
    found: list[Settled] = []
    known: set[str] = set()
    after = sequence - 1
    while len(found) < _CLOSURE_LIMIT:
        records = reader.read(topic, after, 16)
        for record in records:
            one = settled(record)
            if found and one.wire["stream"].get("causation_id") not in known:
                return found
            known.add(one.wire["wire_id"])
            found.append(one)
        if len(records) < 16:
            return found
        after = records[-1].sequence
    return found
