"""The outcome of a submission: its records, or a reply that is not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, get_args

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.reducers.attempt import HolderEvent
from redkey.services.answers import KeptAnswer
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.events import GateApproved, GateRejected, TaskCreated, TaskUnblocked
from redkey.wire.ids import event_id
from redkey.wire.payload import Payload

_PAGE = 16
P = TypeVar("P", bound=Payload)
# Requests whose wire names its cause; other wires with a cause are consequences.
_ACTS = frozenset((*get_args(HolderEvent), TaskUnblocked, TaskCreated, GateApproved, GateRejected))
# The reply, unrecorded, to a claim that found no task.
NO_TASKS = {"status": "no_tasks"}


class Settled(msgspec.Struct, gc=False):
    """One wire at its place, and why it is void, if it is."""

    event: AnyWire
    sequence: int
    timestamp: int
    void: str | None = None
    # The size of the record in bytes.
    size: int = 0

    @property
    def wire(self) -> dict[str, Any]:
        """Return the wire as JSON values."""
        return self.event.as_json()


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A wire to submit to the network that gives the order, and the transaction id drawn for it."""

    wire_id: str
    message: bytes
    transaction_id: str


class Outcome(msgspec.Struct):
    """The records of a submission, in order; `next` is the claim that came with a completion.

    `reply` is the caller's reply, if the submission has a function that makes it.
    """

    records: list[Settled] = []
    answer: dict[str, Any] | None = None
    next: Outcome | None = None
    repeated: bool = False
    reply: Any = None
    # The reply that was kept under the request's key, if the ledger does not show it.
    kept: KeptAnswer | None = None
    # What must be submitted to the network that gives the order before there is an outcome.
    outgoing: tuple[Outgoing, ...] = ()

    def is_recorded(self, idem: str) -> bool:
        """True if the reply to a repeat of the request under its key follows from the records."""
        records = self.records
        # The request's own record is the first.
        if records and getattr(records[0].event.payload, "idem", None) == idem:
            return True
        return any(getattr(one.event.payload, "idem", None) == idem for one in records[1:])

    def payload(self, kind: type[P]) -> P:
        """Return the payload of the first record, the request's own, which is of this type."""
        payload = self.records[0].event.payload
        if not isinstance(payload, kind):
            raise AssertionError(f"the request was recorded as {payload.TYPE}")
        return payload

    @property
    def event_id(self) -> str:
        """Return the event id of the first record, the request's own."""
        return event_id(self.records[0].event.wire_id)

    def first(self, *types: str) -> Settled | None:
        """Return the first record of one of these types."""
        return next((settled for settled in self.records if settled.event.type in types), None)


def settled(record: Record) -> Settled:
    """Return a record of the ledger as an outcome has it."""
    return Settled(wire_of(record.wire), record.sequence, record.timestamp, None, len(record.wire))


def closure(reader: Reader, topic: str, sequence: int) -> list[Settled]:
    """Read a recorded request and all its consequences from the ledger."""
    return following(_from(reader, topic, sequence))


def _from(reader: Reader, topic: str, sequence: int) -> Iterator[Settled]:
    after = sequence - 1
    while records := reader.read(topic, after, _PAGE):
        yield from map(settled, records)
        after = records[-1].sequence


def following(records: Iterable[Settled]) -> list[Settled]:
    """Return the first record and all its consequences: they follow each other, each after its cause."""
    found: list[Settled] = []
    known: set[str] = set()
    for one in records:
        if found and (one.event.stream.causation_id not in known or _is_another_request(found[0].event, one.event)):
            break
        known.add(one.event.wire_id)
        found.append(one)
    return found


def _is_another_request(request: AnyWire, wire: AnyWire) -> bool:
    """True for an act that follows from the request's consequences and was requested on its own."""
    if wire.sender == "system" or type(wire.payload) not in _ACTS:
        return False
    return wire.type != request.type or wire.stream.causation_id != request.wire_id
