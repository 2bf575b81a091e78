"""The memory store is for simulation: the same calls on the same clock give the same ledger."""

from __future__ import annotations

from redkey.ledger.ports import Row
from redkey.ledger.record import NANOSECONDS, Record
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.conformance.stores.checker import check_topic, read_all
from tests.conformance.stores.harness import ManualClock, append, new_topic


def run() -> list[Record]:
    clock = ManualClock()
    disk = MemoryDisk()
    one, two = MemoryStore(clock, disk), MemoryStore(clock, disk)
    topic = new_topic(one)
    for number in range(50):
        append(one if number % 3 else two, topic, number % 7 + 1, f"agt_{number % 5}")
        clock.pass_time(NANOSECONDS * (number % 11))
        clock.step(NANOSECONDS * (number % 13 - 6))
    return read_all(one, topic)


def test_one_run_is_like_the_other() -> None:
    assert run() == run()


def test_a_disk_outlives_its_stores() -> None:
    disk, clock = MemoryDisk(), ManualClock()
    store = MemoryStore(clock, disk)
    topic = new_topic(store)
    append(store, topic, 300)
    with store.write(topic) as unit:
        unit.put_rows(topic, [Row("task", "t1", b"{}")])
    store.close()
    again = MemoryStore(clock, disk)
    assert len(check_topic(again, topic)) == 300
    assert again.row(topic, "task", "t1") is not None


def test_two_disks_know_nothing_of_each_other() -> None:
    one, two = MemoryStore(ManualClock()), MemoryStore(ManualClock())
    topic = new_topic(one)
    append(one, topic, 1)
    assert two.topics() == []
    assert two.known_head(topic) == 0
