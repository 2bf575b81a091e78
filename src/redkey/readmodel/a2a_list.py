"""Tasks in the order of their A2A status, newest first: an index that is brought up to the head when it is asked for.

Keeping it in every unit would cost each task two more rows for the few who list tasks by A2A. So it follows the
ledger from the place that it has reached, in units of its own, and costs nothing where it is not used. A task is in
the list of its state and in the list of its context; places count down, so the newest status comes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from redkey.ledger.ports import Reader, Row, Unit
from redkey.ledger.record import iso_time
from redkey.readmodel.rows import A2A_CONTEXT, A2A_TASK, void_key
from redkey.wire.a2a import A2ATask, Said, project
from redkey.wire.a2a_contract import projection
from redkey.wire.envelope import wire_of
from redkey.wire.ids import parse_stream

# Records that one unit takes in: others take their turn in between.
RECORDS = 2000
_PAGE = 500
_LAST = 1 << 62
_REACHED = "reached"
_SAID = Said("", "ROLE_AGENT", {})


class Listed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task by its A2A status: since which record and when it has been so."""

    task_id: str
    context_id: str
    state: str
    sequence: int
    at: int
    # Whether the status has a message: then the next status is sent even if the state stays the same.
    says: bool = False


class Reached(msgspec.Struct, frozen=True):
    """The last record that the index has taken in, and how many tasks are in each state."""

    sequence: int = 0
    totals: dict[str, int] = {}


class Wanted(msgspec.Struct, frozen=True):
    """Which tasks: of a context, in a state, with a status of this time (nanoseconds) or a later one."""

    context_id: str = ""
    state: str = ""
    after: int = 0


_read = msgspec.json.Decoder(Listed).decode
_read_reached = msgspec.json.Decoder(Reached).decode
_encode = msgspec.json.Encoder().encode


def reached(reader: Reader, topic: str) -> Reached:
    """How far the index has come."""
    row = reader.row(topic, A2A_TASK, "")
    return Reached() if row is None else _read_reached(row.body)


def is_behind(reader: Reader, topic: str) -> bool:
    """True when the ledger has records that the index has not taken in."""
    return reached(reader, topic).sequence < reader.head(topic).sequence


def catch_up(unit: Unit, topic: str) -> None:
    """Take in the next records, at most `RECORDS`."""
    before = reached(unit, topic)
    sequence, totals, changed = before.sequence, dict(before.totals), dict[str, Listed]()
    while sequence < before.sequence + RECORDS:
        records = unit.read(topic, sequence, _PAGE)
        for record in records:
            sequence = record.sequence
            wire = wire_of(record.wire).as_json()
            stream = parse_stream(wire["stream"]["stream_id"])
            if stream.kind != "task" or wire["type"] not in projection().rules:
                continue
            if unit.row(topic, "void", void_key(sequence)) is not None:
                continue
            known = changed.get(stream.subject) or _listed(unit, topic, stream.subject)
            found = _after(known, wire, sequence, record.timestamp)
            if found is None or found is known:
                continue
            if known is not None:
                totals[known.state] -= 1
            totals[found.state] = totals.get(found.state, 0) + 1
            changed[stream.subject] = found
        if len(records) < _PAGE:
            break
    rows = [row for one in changed.values() for row in _rows(one)]
    rows.append(Row(A2A_TASK, "", _encode(Reached(sequence, totals)), _REACHED))
    unit.put_rows(topic, rows)


def count(reader: Reader, topic: str, wanted: Wanted) -> int:
    """How many tasks are wanted."""
    if wanted.context_id or wanted.after:
        return sum(1 for _ in _newest(reader, topic, wanted, 0))
    totals = reached(reader, topic).totals
    return totals.get(wanted.state, 0) if wanted.state else sum(totals.values())


def page(reader: Reader, topic: str, wanted: Wanted, before: int, limit: int) -> tuple[list[Listed], int]:
    """The wanted tasks whose status is older than the record `before` (0: from the newest), and where to go on."""
    found: list[Listed] = []
    for one in _newest(reader, topic, wanted, before):
        if len(found) == limit:
            return found, found[-1].sequence
        found.append(one)
    return found, 0


def _after(known: Listed | None, wire: dict[str, object], sequence: int, timestamp: int) -> Listed | None:
    """The task after a wire; the same object when its status was not told anew."""
    task = None
    if known is not None:
        status = _SAID if known.says else None
        task = A2ATask(known.task_id, known.context_id, known.state, status=status)
    after, _ = project(task, wire, lambda ref: None, iso_time(timestamp))
    if after is None or after.timestamp is None or (task is not None and task.closed):
        # A status that is sent has a time.
        return known
    return Listed(after.task_id, after.context_id, after.state, sequence, timestamp, after.status is not None)


def _listed(reader: Reader, topic: str, task_id: str) -> Listed | None:
    row = reader.row(topic, A2A_TASK, task_id)
    return None if row is None else _read(row.body)


def _rows(one: Listed) -> tuple[Row, Row]:
    body, position = _encode(one), _LAST - one.sequence
    return (
        Row(A2A_TASK, one.task_id, body, one.state, position),
        Row(A2A_CONTEXT, one.task_id, body, one.context_id, position),
    )


def _newest(reader: Reader, topic: str, wanted: Wanted, before: int) -> Iterator[Listed]:
    """The wanted tasks, newest status first."""
    if wanted.context_id:
        found = _of_list(reader, topic, A2A_CONTEXT, wanted.context_id, before)
    else:
        states = [wanted.state] if wanted.state else sorted(projection().states)
        lists = [_of_list(reader, topic, A2A_TASK, state, before) for state in states]
        found = heapq.merge(*lists, key=lambda one: -one.sequence)
    for one in found:
        if one.at < wanted.after:
            return
        if not wanted.state or one.state == wanted.state:
            yield one


def _of_list(reader: Reader, topic: str, kind: str, listed: str, before: int) -> Iterator[Listed]:
    place = (_LAST - before, "\U0010ffff") if before else (0, "")
    while True:
        rows = reader.rows(topic, kind, listed, place, _PAGE)
        for row in rows:
            yield _read(row.body)
        if len(rows) < _PAGE:
            return
        place = (rows[-1].position, rows[-1].key)
