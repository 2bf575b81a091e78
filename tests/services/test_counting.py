"""The counters follow the ledger: whatever is counted when, and by which server, they show what the ledger gives."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from redkey.commands.registry import PriceCredits
from redkey.ledger import content
from redkey.readmodel.counted import counted_at, counters_now
from redkey.services.counting import Counting, count_up
from redkey.services.outcome import Settled
from redkey.services.reconcile import reconcile
from redkey.stores.ids import SystemIds
from redkey.stores.sqlite import SqliteStore
from tests.harness.office import Office
from tests.harness.workshop import checked


def _hold(store: SqliteStore) -> None:
    """What is shown is what the ledger gives when it is counted from its first record on."""
    for found in reconcile(store):
        assert not found.differences, found


def _check(directory: Path) -> None:
    """fsck finds the counters right, at whatever place they are. (An office leaves out what counters do not need.)"""
    report = checked(directory)
    assert report.figures["records"] > 0
    assert not [one for one in report.faults if "counter" in one.code]


def test_counters_follow_at_their_place_and_what_is_shown_is_whole(tmp_path: Path) -> None:
    async def whole() -> None:
        with SqliteStore(tmp_path) as store:
            office = await Office(store).begin()
            counting = Counting(office.coordinator.join, seconds=3600)
            office.coordinator.listen(counting.heard)
            agent = await office.agent("atlas")
            assert counted_at(store, office.topic) == 0
            _hold(store)

            # The records before the listener came are read from the ledger, the others are at hand.
            for price in (3, 5):
                await counting.stop()
                assert counted_at(store, office.topic) == office.head
                assert counters_now(store, office.topic) == {
                    name: amount for name, amount in store.counters(office.topic) if name != "counted_at"
                }
                _hold(store)
                await office.complete(await office.hold(await office.task(), agent))
                await counting.stop()
                # A new price holds from its record on, for records before the place and after it.
                prices = content.structure({"task.created": price})
                await office.task()
                await office.do(PriceCredits(price, content.ref(prices)), contents=(prices,))
                await office.task()
                _hold(store)

            # Another server knows nothing of what this one has at hand, and this one nothing of its counting.
            with SqliteStore(tmp_path) as second_store:
                second = Office(second_store, office.ids).open(office.topic, office.admin.workspace_id)
                other = Counting(second.coordinator.join, seconds=3600)
                second.coordinator.listen(other.heard)
                await second.task()
                await office.task()
                await other.stop()
                assert counted_at(store, office.topic) == office.head
                await office.task()
                await counting.stop()
                _hold(store)
            # A crash: these are never counted by the process that wrote them.
            await office.task()
            place, head = counted_at(store, office.topic), office.head
            assert place < head
        _check(tmp_path)

    asyncio.run(whole())


def test_records_in_memory_are_counted_while_newer_ones_are_committed(tmp_path: Path) -> None:
    """Under load the ledger has moved on when the counting unit runs: it counts what it was given, at its own price."""

    async def whole() -> None:
        with SqliteStore(tmp_path) as store:
            office = await Office(store).begin()
            records: list[Settled] = []
            office.coordinator.listen(lambda _, settled: records.extend(settled))
            while not await office.coordinator.act(office.topic, lambda unit: count_up(unit, office.topic, [])):
                pass
            await office.task()
            given = list(records)
            prices = content.structure({"task.created": 7})
            await office.do(PriceCredits(7, content.ref(prices)), contents=(prices,))
            await office.task()

            def count(expected: int) -> None:
                assert counted_at(store, office.topic) == expected
                _hold(store)

            assert await office.coordinator.act(office.topic, lambda unit: count_up(unit, office.topic, given))
            count(given[-1].sequence)
            # A new price among them: they are read from the ledger, up to its head.
            later = records[len(given) :]
            assert await office.coordinator.act(office.topic, lambda unit: count_up(unit, office.topic, later))
            count(office.head)
            # So the first of these is counted already, and the last one comes with the next call.
            await office.task()
            await office.task()
            rest = [one for one in records if one.sequence >= later[-1].sequence][:-1]
            assert await office.coordinator.act(office.topic, lambda unit: count_up(unit, office.topic, rest))
            count(rest[-1].sequence)

    asyncio.run(whole())


def test_a_directory_of_the_second_format_is_counted_on_from_its_head(tmp_path: Path) -> None:
    async def work(count: int) -> None:
        with SqliteStore(tmp_path) as store:
            office = Office(store, SystemIds())
            topics = store.topics()
            if topics:
                workspace = next(found.workspace_id for found in reconcile(store))
                office.open(topics[0], workspace)
            else:
                await office.begin()
            await office.coordinator.act(office.topic, lambda unit: None)
            counting = Counting(office.coordinator.join, seconds=3600)
            office.coordinator.listen(counting.heard)
            counting.heard(office.topic, ())
            if not topics:
                await office.agent("atlas")
            for _ in range(count):
                await office.task()
            if not topics:
                await counting.stop()
            _hold(store)

    asyncio.run(work(3))
    with sqlite3.connect(tmp_path / "redkey.db") as database:
        database.execute("DELETE FROM counter WHERE name = 'counted_at'")
        database.execute("DROP TABLE due")
        database.execute("PRAGMA user_version = 2")
    database.close()
    # An older format counted everything in its units.
    _check(tmp_path)
    asyncio.run(work(2))
    _check(tmp_path)
