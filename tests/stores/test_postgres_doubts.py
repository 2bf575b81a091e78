"""A COMMIT whose connection is lost ends one way or the other, and the store finds out which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from redkey.errors import CommitInDoubt, StoreFailed
from redkey.ledger.ports import Doubt, Row
from redkey.stores.postgres import PostgresStore
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, entries
from tests.harness.postgres import cluster
from tests.harness.postgres_proxy import CUTS, Proxy


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(cluster().socket) as proxy:
        yield proxy


@pytest.fixture
def store(postgres_url: str, proxy: Proxy) -> Iterator[PostgresStore]:
    with PostgresStore(proxy.url(postgres_url.partition("@/")[2].partition("?")[0])) as store:
        yield store


def doubt_of(store: PostgresStore, topic: str, *, records: bool) -> Doubt:
    """The doubt of a unit whose COMMIT is cut."""

    def write() -> None:
        with store.write(topic) as unit:
            head = unit.head(topic).sequence
            if records:
                unit.append(topic, entries(head + 1, 2), head)
            unit.put_rows(topic, [Row("task", "t1", b"{}")])

    with pytest.raises(CommitInDoubt) as raised:
        write()
    assert isinstance(raised.value.doubt, Doubt)
    return raised.value.doubt


# One that hangs lasts until PostgreSQL ends it: once is enough.
@pytest.mark.parametrize(("cut", "records"), [(cut, True) for cut in CUTS] + [("before", False), ("after", False)])
def test_a_lost_commit_is_resolved(store: PostgresStore, proxy: Proxy, cut: str, records: bool) -> None:
    topic = store.create_topic()
    append(store, topic, 3)
    proxy.next = cut
    doubt = doubt_of(store, topic, records=records)
    assert proxy.cuts[cut] == 1
    committed = cut == "after"
    assert store.resolve(doubt) == ("committed" if committed else "failed")
    assert (store.row(topic, "task", "t1") is not None) == committed
    append(store, topic, 1)
    assert len(check_topic(store, topic)) == 4 + 2 * (committed and records)


def test_a_doubt_is_resolved_rightly_when_others_have_written_since(store: PostgresStore, proxy: Proxy) -> None:
    topic = store.create_topic()
    proxy.next = "before"
    doubt = doubt_of(store, topic, records=True)
    # At the same place, and beyond it.
    append(store, topic, 5)
    assert store.resolve(doubt) == "failed"
    proxy.next = "after"
    doubt = doubt_of(store, topic, records=False)
    append(store, topic, 5)
    assert store.resolve(doubt) == "committed"


def test_a_doubt_waits_while_the_database_cannot_be_reached(store: PostgresStore, proxy: Proxy) -> None:
    topic = store.create_topic()
    proxy.next = "after"
    doubt = doubt_of(store, topic, records=True)
    proxy.closed = True
    proxy.cut_all()
    with pytest.raises(StoreFailed) as failed:
        store.resolve(doubt)
    assert failed.value.code == "store_unreachable"
    proxy.closed = False
    assert store.resolve(doubt) == "committed"


def test_a_unit_and_a_read_survive_connections_that_were_lost_while_idle(store: PostgresStore, proxy: Proxy) -> None:
    topic = store.create_topic()
    append(store, topic, 1)
    proxy.cut_all()
    append(store, topic, 1)
    proxy.cut_all()
    assert store.head(topic).sequence == 2


def test_a_unit_takes_two_round_trips(store: PostgresStore) -> None:
    topic = store.create_topic()
    append(store, topic, 1)
    before = store.connections.trips
    with store.write(topic) as unit:
        head = unit.head(topic).sequence
        unit.next_timestamp(topic)
        unit.append(topic, entries(head + 1, 40, "agt_1"), head)
        unit.put_rows(topic, [Row("task", f"t{number}", b"{}", "open", number) for number in range(20)])
        unit.delete_rows(topic, "task", ["t99"])
        unit.count(topic, [("tasks", 1)])
        unit.put_fact(topic, "key/1", "one")
        unit.put_due(topic, 7)
    assert store.connections.trips - before <= 3, "the lock, the commit, and perhaps the notice beside them"
