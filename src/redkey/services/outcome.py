"""What became of a submission: its records, or an answer that nothing records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.services.answers import KeptAnswer
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.ids import event_id
from redkey.wire.payload import Payload

_PAGE = 16
P = TypeVar("P", bound=Payload)
# What is answered, unrecorded, to a claim for which there is nothing.
NO_TASKS = {"status": "no_tasks"}


class Settled(msgspec.Struct, gc=False):
    """One wire at its place, and why it is void if it is."""

    event: AnyWire
    sequence: int
    timestamp: int
    void: str | None = None
    # How many bytes the record has.
    size: int = 0

    @property
    def wire(self) -> dict[str, Any]:
        """The wire as JSON values."""
        return self.event.as_json()


class Outcome(msgspec.Struct):
    """The records of a submission, in order; `next` is the claim that came with a completion.

    `reply` is what its caller is told, where the submission said how to make it.
    """

    records: list[Settled] = []
    answer: dict[str, Any] | None = None
    next: Outcome | None = None
    repeated: bool = False
    reply: Any = None
    # What was answered under the request's key before, where nothing else tells it.
    kept: KeptAnswer | None = None

    def is_recorded(self, idem: str) -> bool:
        """True when the records tell the answer again to whoever repeats the request under its key."""
        records = self.records
        # The request's own record is the first.
        if records and getattr(records[0].event.payload, "idem", None) == idem:
            return True
        return any(getattr(one.event.payload, "idem", None) == idem for one in records[1:])

    def payload(self, kind: type[P]) -> P:
        """The payload of the first record, the request's own, which is of this kind."""
        payload = self.records[0].event.payload
        if not isinstance(payload, kind):
            raise AssertionError(f"the request was recorded as {payload.TYPE}")
        return payload

    @property
    def event_id(self) -> str:
        """The event id of the first record, the request's own."""
        return event_id(self.records[0].event.wire_id)

    def first(self, *types: str) -> Settled | None:
        """The first record of one of these types."""
        return next((settled for settled in self.records if settled.event.type in types), None)


def settled(record: Record) -> Settled:
    """A record of the ledger as an outcome shows it."""
    return Settled(wire_of(record.wire), record.sequence, record.timestamp, None, len(record.wire))


def closure(reader: Reader, topic: str, sequence: int) -> list[Settled]:
    """A recorded request and everything that followed from it, read from the ledger again."""
    return following(_from(reader, topic, sequence))


def _from(reader: Reader, topic: str, sequence: int) -> Iterator[Settled]:
    after = sequence - 1
    while records := reader.read(topic, after, _PAGE):
        yield from map(settled, records)
        after = records[-1].sequence


def following(records: Iterable[Settled]) -> list[Settled]:
    """The first record and all that it brought about: they stand together, each after its cause."""
    found: list[Settled] = []
    known: set[str] = set()
    for one in records:
        if found and one.event.stream.causation_id not in known:
            break
        known.add(one.event.wire_id)
        found.append(one)
    return found
