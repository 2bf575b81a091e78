"""Keys that have left the idempotency window are known in every store and process, and in older data directories."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.ledger.ports import SequencedStore
from redkey.reducers.world import IDEMPOTENCY_NANOSECONDS, SECOND
from redkey.services.counting import count_up
from redkey.services.workspaces import setting_of
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.schema import VERSION
from redkey.wire.ids import event_id
from tests.harness.desk import CountedIds, HandClock
from tests.harness.office import Office
from tests.harness.workshop import checked

# More than a block of the event index, and not two.
COUNT = 300
FIRST_FORMAT = """
UPDATE record SET subjects = (
  SELECT json_group_array(value) FROM json_each(subjects) WHERE value NOT GLOB 'idem:*'
);
DELETE FROM event WHERE subject GLOB 'idem:*';
DELETE FROM counter WHERE name = 'counted_at';
DROP TABLE due;
PRAGMA user_version = 1;
"""


def key(number: int) -> dict[str, str]:
    return {"idem": f"{number:032x}"[::-1], "body": "b" * 16}


async def _fill(office: Office) -> list[str]:
    """Ask for many tasks, each under a key; the events that tell of it."""
    await office.begin()
    return [(await office.do(office.new_task(), **key(number))).records[0].event.wire_id for number in range(COUNT)]


async def _ask_late(office: Office, events: list[str]) -> None:
    before = office.head
    for number in range(0, COUNT, 7):
        with pytest.raises(Refused) as refused:
            await office.do(office.new_task(), **key(number))
        assert (refused.value.status, refused.value.code) == (410, "idempotency_key_expired")
        assert refused.value.members == {"eventId": event_id(events[number])}
    assert office.head == before


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_key_that_has_left_the_window_is_refused_by_every_process(tmp_path: Path, kind: str) -> None:
    clock, disk = HandClock(), MemoryDisk()

    def another() -> SequencedStore:
        return MemoryStore(clock, disk) if kind == "memory" else SqliteStore(tmp_path, clock)

    async def whole() -> None:
        with closing(another()) as store, closing(another()) as second, closing(another()) as later:
            one, other = Office(store, CountedIds(1)), Office(second, CountedIds(2))
            events = await _fill(one)
            other.open(one.topic, one.admin.workspace_id)
            assert (await other.do(other.new_task(), **key(3))).repeated
            clock.advance(IDEMPOTENCY_NANOSECONDS // SECOND + 1)
            await one.do(one.new_task(), **key(COUNT))
            await _ask_late(one, events)
            await _ask_late(other, events)
            await _ask_late(Office(later, CountedIds(3)).open(one.topic, one.admin.workspace_id), events)
            assert (await other.do(other.new_task(), **key(COUNT))).repeated
            for office in (one, other):
                await office.coordinator.stop()

    asyncio.run(whole())


def test_a_directory_of_the_first_format_is_indexed_when_it_is_opened(tmp_path: Path) -> None:
    clock = HandClock()

    async def fill() -> tuple[str, str, list[str]]:
        with SqliteStore(tmp_path, clock) as store:
            office = Office(store)
            events = await _fill(office)
            await office.coordinator.stop()
            with store.write(office.topic) as unit:
                unit.put_fact(office.topic, setting_of(office.admin.workspace_id), office.topic)
                # The first format counted every record in the unit that wrote it.
                assert count_up(unit, office.topic, [])
            return office.topic, office.admin.workspace_id, events

    topic, workspace_id, events = asyncio.run(fill())
    now = _indexed(tmp_path)
    assert any(subject == "idem:" + key(0)["idem"][:16] for subject, _ in now[1])
    _run(tmp_path, lambda database: database.executescript(FIRST_FORMAT))
    before = _indexed(tmp_path)
    assert before != now
    # fsck reads it as it is, and leaves it so.
    assert wrong(tmp_path) == set()
    assert _indexed(tmp_path) == before

    async def ask() -> None:
        clock.advance(IDEMPOTENCY_NANOSECONDS // SECOND + 1)
        with SqliteStore(tmp_path, clock) as store:
            assert _indexed(tmp_path) == now
            office = Office(store, CountedIds(2)).open(topic, workspace_id)
            await office.do(office.new_task(), **key(COUNT))
            await _ask_late(office, events)
            await office.coordinator.stop()

    asyncio.run(ask())
    assert _run(tmp_path, lambda database: database.execute("PRAGMA user_version").fetchone()) == (VERSION,)
    assert wrong(tmp_path) == set()
    _run(tmp_path, lambda database: database.executescript("DROP TABLE due; PRAGMA user_version = 1"))
    assert wrong(tmp_path) == {"index_wrong"}, "its records do not fit its format"


def wrong(directory: Path) -> set[str]:
    """What fsck finds; the texts of tasks were never there."""
    return {fault.code for fault in checked(directory).faults} - {"content_missing"}


def _run(directory: Path, work: Callable[[sqlite3.Connection], Any]) -> Any:
    with closing(sqlite3.connect(directory / "redkey.db", isolation_level=None)) as database:
        return work(database)


def _indexed(directory: Path) -> Any:
    """What the ledger's index is made of."""
    names = "SELECT position, subjects FROM record ORDER BY 1"
    entries = "SELECT subject, position FROM event ORDER BY 1, 2"
    return _run(directory, lambda database: [database.execute(sql).fetchall() for sql in (names, entries)])
