"""Failover: writes stay closed on another timeline until every server confirms that nothing it knows of is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from redkey.errors import StoreFailed, StoreRefused
from redkey.ledger.ports import SequencedStore
from redkey.reducers.world import RULES
from redkey.stores.postgres import PostgresStore
from tests.conformance.stores.harness import append, wait_until
from tests.harness.postgres import Cluster, cluster, promoted_copy
from tests.harness.postgres_proxy import Proxy

pytestmark = pytest.mark.xdist_group("cluster")


class Servers:
    """Two servers that reach their database through a proxy."""

    def __init__(self, proxy: Proxy, database: str, home: Path, stack: ExitStack) -> None:
        self.proxy, self.url, self.database, self.stack = proxy, proxy.url(database), database, stack
        self.homes = [home / name for name in ("one", "two")]
        for place in self.homes:
            place.mkdir()
        self.stores = [self.start(place) for place in self.homes]

    def start(self, home: Path, url: str = "") -> PostgresStore:
        """A server in a data directory."""
        store = self.stack.enter_context(PostgresStore(self.url))
        store.join(url or f"http://{home.name}", "1", RULES, home)
        return store

    def kill(self, store: PostgresStore) -> None:
        """End a server as kill -9 does: it removes nothing, and the kernel releases its files."""
        assert store._kept is not None
        store._kept.close()
        store._servers.leave = lambda connection: None  # type: ignore[method-assign]
        store.close()

    def missing(self, promoted: Cluster) -> list[str]:
        """What servers say that a database lacks."""
        rows = promoted.execute(
            "SELECT missing FROM redkey.server WHERE missing <> '' ORDER BY id", database=self.database
        )
        return [text for (text,) in rows]

    def fail_over(self, promoted: Cluster) -> None:
        self.proxy.target = promoted.socket
        self.proxy.cut_all()


@pytest.fixture
def servers(postgres_url: str, tmp_path: Path) -> Iterator[Servers]:
    name = postgres_url.partition("@/")[2].partition("?")[0]
    with Proxy(cluster().socket) as proxy, ExitStack() as stack:
        found = Servers(proxy, name, tmp_path, stack)
        wait_until(lambda: cluster().execute("SELECT count(*) FROM redkey.server", database=name)[0][0] == 2)
        yield found


def refusal(store: SequencedStore, topic: str) -> str:
    """The code with which a unit is refused; empty when it is not."""
    try:
        append(store, topic, 1)
    except StoreFailed as refused:
        return refused.code
    return ""


def test_a_failover_that_lost_nothing_is_confirmed_by_all(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    assert two.known_head(topic) == 3
    with promoted_copy(cluster()) as promoted:
        servers.fail_over(promoted)
        wait_until(lambda: refusal(one, topic) == "")
        assert refusal(two, topic) == ""
        assert one.head(topic).sequence >= 5


def test_a_failover_that_lost_a_commit_keeps_writes_closed(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    one.known_head(topic)
    with promoted_copy(cluster()) as promoted:
        append(one, topic, 1)
        servers.fail_over(promoted)

        wait_until(lambda: servers.missing(promoted))
        assert servers.missing(promoted) == [f"topic {topic} ends at 3, not 4"]
        # A server that knows of nothing that is lost does not open them either.
        for store in (one, two):
            assert refusal(store, topic) == "failover_unconfirmed"
        with pytest.raises(StoreFailed) as refused:
            two.check_writable()
        assert refused.value.code == "failover_unconfirmed"
        assert "redkey ledger new-epoch" in refused.value.message
        two.accept_timeline()
        assert refusal(two, topic) == ""
        assert two.head(topic).sequence == 4


def test_a_database_behind_a_checkpoint_that_was_seen_is_refused(postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    # What a process leaves that is killed while it writes.
    (tmp_path / "seen" / ".1.0.1001.0123").write_bytes(b"redkey/log/wk_1/e1\n9\nroot\n\n")
    with PostgresStore(postgres_url) as store:
        append(store, store.create_topic(), 3)
        store.join("http://one", "1", RULES, tmp_path)
    (tmp_path / "seen" / "1.0.1001").write_bytes(b"redkey/log/wk_1/e1\n7\nroot\n\n")
    with PostgresStore(postgres_url) as store, pytest.raises(StoreRefused) as refused:
        store.join("http://one", "1", RULES, tmp_path)
    assert refused.value.code == "head_behind_checkpoint"


def test_a_server_that_restarts_still_knows_the_commit_that_was_lost(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    with promoted_copy(cluster()) as promoted:
        append(one, topic, 1)
        wait_until(lambda: two.known_head(topic) == 4)
        # Both are killed with the database, and the first one comes back at another port.
        for store in (one, two):
            servers.kill(store)
        servers.fail_over(promoted)
        again = servers.start(servers.homes[0], "http://elsewhere")
        wait_until(lambda: servers.missing(promoted))
        assert refusal(again, topic) == "failover_unconfirmed"
        servers.start(servers.homes[1])
        wait_until(lambda: len(servers.missing(promoted)) == 3)
        assert set(servers.missing(promoted)) == {f"topic {topic} ends at 3, not 4"}
        assert refusal(again, topic) == "failover_unconfirmed"
        again.accept_timeline()
        # The operator's word: what they knew is void, and the row of the dead one goes.
        wait_until(lambda: refusal(again, topic) == "")
        wait_until(lambda: len(promoted.execute("SELECT id FROM redkey.server", database=servers.database)) == 2)


def test_a_server_that_restarts_confirms_what_is_there_also_for_the_one_it_was(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    for store in (one, two):
        servers.kill(store)
    with promoted_copy(cluster()) as promoted:
        servers.fail_over(promoted)
        # It comes back twice, each time at another port, before the other server does.
        again = servers.start(servers.homes[0], "http://elsewhere")
        assert refusal(again, topic) == "failover_unconfirmed"
        servers.kill(again)
        third = servers.start(servers.homes[0], "http://third")
        assert refusal(third, topic) == "failover_unconfirmed"
        servers.start(servers.homes[1])
        wait_until(lambda: refusal(third, topic) == "")
        assert third.head(topic).sequence == 4


def test_a_server_that_stays_away_keeps_writes_closed_for_as_long_as_it_takes(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    servers.kill(one)
    with promoted_copy(cluster()) as promoted:
        servers.fail_over(promoted)
        wait_until(lambda: refusal(two, topic) == "failover_unconfirmed")
        # It is gone for two days; the other one renews its row each second.
        promoted.execute(
            "UPDATE redkey.server SET seen = seen - interval '2 days' WHERE url = 'http://one'",
            database=servers.database,
        )
        (moment,) = promoted.execute("SELECT clock_timestamp()")[0]
        # Twice at least: whatever the other one does when it renews its row is done.
        renewed = "SELECT count(*) FROM redkey.server WHERE seen > %s + interval '1 second'"
        wait_until(lambda: promoted.execute(renewed, [moment], database=servers.database)[0][0] == 1)
        assert two._servers.alive == 1
        assert refusal(two, topic) == "failover_unconfirmed"
        two.accept_timeline()
        wait_until(
            lambda: promoted.execute("SELECT url FROM redkey.server", database=servers.database) == [("http://two",)]
        )


def test_a_server_whose_machine_was_restarted_cannot_confirm(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    servers.kill(one)
    for file in (servers.homes[0] / "heads").iterdir():
        lines = file.read_bytes().split(b" ")
        # The run of the machine that wrote it was another one.
        file.write_bytes(b" ".join([*lines[:2], b"x" * len(lines[2]), *lines[3:]]))
    with promoted_copy(cluster()) as promoted:
        servers.fail_over(promoted)
        servers.start(servers.homes[0])
        wait_until(lambda: servers.missing(promoted))
        assert "was not stopped in order" in servers.missing(promoted)[0]
        assert refusal(two, topic) == "failover_unconfirmed"
        two.accept_timeline()


def test_a_database_that_was_set_back_on_its_timeline_is_refused(servers: Servers) -> None:
    one, _ = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    servers.kill(one)
    execute = "UPDATE redkey.record SET running_hash = %s WHERE sequence = 3"
    cluster().execute(execute, [b"x" * 48], database=servers.database)
    with pytest.raises(StoreRefused, match=f"record 3 of topic {topic} is another one"):
        servers.start(servers.homes[0])
    cluster().execute("DELETE FROM redkey.record WHERE sequence = 3", database=servers.database)
    cluster().execute("UPDATE redkey.topic SET sequence = 2", database=servers.database)
    with pytest.raises(StoreRefused, match=f"topic {topic} ends at 2, not 3") as refused:
        servers.start(servers.homes[0])
    assert refused.value.code == "head_behind_checkpoint"
    assert "redkey ledger new-epoch" in refused.value.message
