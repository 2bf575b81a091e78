"""Queries over a workspace's events: by index where there is one, otherwise by scanning bounded ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.readmodel.events import show
from redkey.readmodel.moments import sequence_at
from redkey.services.subscriptions import place_of
from redkey.shapes.events import Event
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.subjects import subjects

_STRETCH = 500


class Question(msgspec.Struct, frozen=True):
    """The filter of a query: events about all the given ids, of one of the types, between two times."""

    types: frozenset[str] = frozenset()
    # A subject of the event index other than the ids below: a project, a phase or an artifact.
    about: str = ""
    task_id: str = ""
    claim_id: str = ""
    agent_id: str = ""
    workflow_id: str = ""
    queue_id: str = ""
    # Nanoseconds; 0 means no bound. `until` is not included.
    since: int = 0
    until: int = 0
    newest_first: bool = False

    @property
    def subject(self) -> str:
        """Return the id to look up in the event index: the one with the fewest events."""
        return self.about or self.task_id or self.claim_id or self.workflow_id or self.agent_id


class Page(msgspec.Struct, frozen=True):
    """Events in order, and the place after which the next page begins; None if there is no more."""

    events: list[Event]
    next: int | None


def query(reader: Reader, topic: str, question: Question, after: int | None, limit: int, cost: int) -> Page:
    """Return a page of events. At most `cost` records are scanned for it; then the page ends early with its cursor."""
    places: dict[str, tuple[str, str]] = {}
    found: list[Event] = []
    looked = 0
    for records in _stretches(reader, topic, question, after):
        for record in records:
            looked += 1
            event = _match(reader, record, question, places)
            if event is not None:
                found.append(event)
            if len(found) >= limit or looked >= cost:
                return Page(found, record.sequence)
    return Page(found, None)


def _stretches(reader: Reader, topic: str, question: Question, after: int | None) -> Iterator[Sequence[Record]]:
    """Yield records that may match, a range at a time, within the bounds of time."""
    head = reader.head(topic).sequence
    lowest = sequence_at(reader, topic, question.since, head) if question.since else 1
    highest = sequence_at(reader, topic, question.until, head) - 1 if question.until else head
    back = question.newest_first
    place = (highest + 1 if after is None else min(after, highest + 1)) if back else max(after or 0, lowest - 1)
    while lowest <= highest and (place > lowest if back else place < highest):
        records = _read(reader, topic, question.subject, place, back)
        inside = [record for record in records if lowest <= record.sequence <= highest]
        yield inside
        if len(records) < _STRETCH or len(inside) < len(records):
            return
        place = records[-1].sequence


def _read(reader: Reader, topic: str, subject: str, place: int, back: bool) -> Sequence[Record]:
    if subject:
        return reader.events(topic, subject, place, _STRETCH, newest_first=back)
    return reader.read_back(topic, place, _STRETCH) if back else reader.read(topic, place, _STRETCH)


def _match(reader: Reader, record: Record, question: Question, places: dict[str, tuple[str, str]]) -> Event | None:
    # Wires are canonical, so the type is visible in the bytes; most records need no decoding.
    if question.types and not any(b'"type":"%s"' % one.encode() in record.wire for one in question.types):
        return None
    wire = wire_of(record.wire)
    if question.types and wire.type not in question.types:
        return None
    if not _speaks_of(reader, record.topic, wire, question, places):
        return None
    return show(wire, record.sequence, record.timestamp)


def _speaks_of(
    reader: Reader, topic: str, wire: AnyWire, question: Question, places: dict[str, tuple[str, str]]
) -> bool:
    named = subjects(wire)
    if any(key and key not in named for key in (question.task_id, question.claim_id, question.agent_id)):
        return False
    for index, key in ((0, question.queue_id), (1, question.workflow_id)):
        if key and key not in named and _place(reader, topic, named, places)[index] != key:
            return False
    return True


def _place(reader: Reader, topic: str, named: tuple[str, ...], places: dict[str, tuple[str, str]]) -> tuple[str, str]:
    task_id = next((name for name in named if name.startswith("task_")), "")
    if task_id not in places:
        places[task_id] = place_of(reader, topic, task_id)
    return places[task_id]
