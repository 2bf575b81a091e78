"""How far a ledger is counted, and what its records after that place add.

Nothing is decided by the counters, so no unit waits for them: they follow the ledger, at a place that is stored beside
them (`services.counting` moves both). Views add what the records after that place say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from redkey.errors import UpgradeNeeded
from redkey.ledger.ports import Reader
from redkey.ledger.record import LOCAL_PAYER, Record
from redkey.readmodel.meter import Meter
from redkey.readmodel.rows import entity, void_key
from redkey.readmodel.structure import pinned
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.events import CreditsPriced

# The counter that holds the sequence up to which all records are counted.
COUNTED_AT = "counted_at"
METERED = ("type/", "agent/", "model/", "task/")
_PAGE = 1000
_PRICED = CreditsPriced.TYPE.encode()


def counted_at(reader: Reader, topic: str) -> int:
    """Up to which record the counters of a topic count."""
    return dict(reader.counters(topic, COUNTED_AT)).get(COUNTED_AT, 0)


def counters_now(reader: Reader, topic: str, prefixes: Sequence[str] = METERED) -> Counter[str]:
    """What the meter counts up to the head: the counters with these prefixes, and the records after their place."""
    while True:
        at = counted_at(reader, topic)
        counts = Counter({name: amount for prefix in prefixes for name, amount in reader.counters(topic, prefix)})
        counts += count_records(reader, topic, at, reader.head(topic).sequence)
        # Otherwise the place was moved in between, and some records may have been added twice.
        if counted_at(reader, topic) == at:
            return counts


def count_records(reader: Reader, topic: str, after: int, last: int) -> Counter[str]:
    """What the records after a place count, up to and including `last`."""
    meter = Meter()
    if after == last:
        return meter.take()
    prices = prices_at(reader, topic, after, last)
    for record, wire in _wires(reader, topic, after, last):
        if type(wire.payload) is CreditsPriced:
            prices = pinned(reader, topic, wire.payload.prices_ref.sha256)
        meter.note(prices, wire, len(record.wire), record.timestamp, _void(reader, record))
    return meter.take()


def _wires(reader: Reader, topic: str, after: int, last: int) -> Iterator[tuple[Record, AnyWire]]:
    while after < last and (records := reader.read(topic, after, min(_PAGE, last - after))):
        for record in records:
            # A record of a type that nobody here knows is not counted.
            with suppress(UpgradeNeeded):
                yield record, wire_of(record.wire)
        after = records[-1].sequence


def _void(reader: Reader, record: Record) -> str | None:
    """Whether a record is void: those of others may be, and a row says so."""
    if record.payer == LOCAL_PAYER or reader.row(record.topic, "void", void_key(record.sequence)) is None:
        return None
    return "void"


def prices_at(reader: Reader, topic: str, place: int, last: int) -> Mapping[str, int]:
    """The price table in force at a place: the present one, unless a record after it and up to `last` set another."""
    row = reader.row(topic, "workspace", "")
    if row is None:
        return {}
    workspace = entity(row)
    if not any(reader.read_back(topic, last + 1, 1, after=place, containing=_PRICED)):
        prices: Mapping[str, int] = workspace.prices
        return prices
    for record in _priced(reader, topic, workspace.workspace_id, place):
        return pinned(reader, topic, record.prices_ref.sha256)
    return {}


def _priced(reader: Reader, topic: str, workspace_id: str, place: int) -> Iterable[CreditsPriced]:
    """The price tables that were set up to a place, the last first."""
    before = place + 1
    while records := reader.events(topic, workspace_id, before, _PAGE, newest_first=True):
        for record in records:
            payload = wire_of(record.wire).payload
            if type(payload) is CreditsPriced:
                yield payload
        before = records[-1].sequence
