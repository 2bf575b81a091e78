"""The memory store across a network: commits in doubt, and how they are resolved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from redkey.errors import CommitInDoubt, StoreFailed, StoreMisused
from redkey.ledger.ports import Doubt, Row
from redkey.stores.clock import SystemClock
from redkey.stores.memory.network import Network, NetworkStore, Weather
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, entries, new_topic


def doubt_of(store: NetworkStore, topic: str, work: Callable[[Any], object]) -> Doubt:
    """The doubt that a unit ends in."""
    with pytest.raises(CommitInDoubt) as found, store.write(topic) as unit:
        work(unit)
    doubt = found.value.doubt
    assert isinstance(doubt, Doubt)
    return doubt


def record(unit: Any) -> None:
    unit.append(unit.topic, entries(1, 2), 0)


def row_only(unit: Any) -> None:
    unit.put_rows(unit.topic, [Row("task", "task_1", b"{}")])


@pytest.mark.parametrize("work", [record, row_only])
@pytest.mark.parametrize(
    ("weather", "outcome"), [(Weather(lost_commit=1), "failed"), (Weather(done_commit=1), "committed")]
)
def test_a_doubt_is_resolved_by_what_the_database_has(
    weather: Weather, outcome: str, work: Callable[[Any], object]
) -> None:
    network = Network(SystemClock(), Random(1), weather=weather)
    one, two = NetworkStore(network), NetworkStore(network)
    topic = new_topic(one)
    doubt = doubt_of(one, topic, work)
    network.weather = Weather()
    # Another server goes on meanwhile: the truth stays the same.
    append(two, topic, 1)
    assert one.resolve(doubt) == outcome
    assert (one.row(topic, "task", "task_1") is not None) == (work is row_only and outcome == "committed")
    append(one, topic, 1)
    assert len(check_topic(one, topic)) == (4 if work is record and outcome == "committed" else 2)


def test_the_lock_of_a_commit_that_is_under_way_is_waited_for() -> None:
    """Once the lock is taken, the lost transaction has ended, one way or the other."""
    ends: list[Callable[[], None]] = []
    network = Network(SystemClock(), Random(1), weather=Weather(late_commit=1), later=lambda _, end: ends.append(end))
    store = NetworkStore(network)
    topic = new_topic(store)
    doubt = doubt_of(store, topic, record)
    network.weather = Weather()
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(store.resolve(doubt)))
    asking.start()
    assert answers == []
    ends.pop()()
    asking.join(60)
    assert answers == ["committed" if store.head(topic).sequence else "failed"]


def test_a_lost_connection_is_told() -> None:
    network = Network(SystemClock(), Random(1), weather=Weather(lost_begin=1, lost_resolve=1))
    store = NetworkStore(network)
    topic = new_topic(store)
    with pytest.raises(StoreFailed), store.write(topic):
        pass
    with pytest.raises(StoreFailed):
        store.resolve(Doubt(topic, 1, b"", "1"))


def test_a_server_that_is_gone_commits_nothing_and_leaves_no_lock() -> None:
    network = Network(SystemClock(), Random(1))
    one, two = NetworkStore(network), NetworkStore(network)
    topic = new_topic(one)

    def die_in_a_unit() -> None:
        with one.write(topic) as unit:
            record(unit)
            one.close()

    with pytest.raises(StoreMisused):
        die_in_a_unit()
    assert two.head(topic).sequence == 0
    append(two, topic, 1)
    assert len(check_topic(two, topic)) == 1
