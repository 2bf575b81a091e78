"""Failover: writes stay closed on another timeline until every server confirms that nothing it knows of is lost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from redkey.errors import StoreFailed, StoreRefused
from redkey.ledger.ports import SequencedStore
from redkey.stores.postgres import PostgresStore
from tests.conformance.stores.harness import append, wait_until
from tests.harness.postgres import Cluster, cluster, give, run
from tests.harness.postgres_proxy import Proxy

pytestmark = pytest.mark.xdist_group("cluster")


@contextmanager
def replica() -> Iterator[Cluster]:
    """A copy of the cluster as it is now, promoted."""
    base = Path(tempfile.mkdtemp(prefix="rkpg"))
    give(base)
    run("pg_basebackup", "-h", str(cluster().base), "-U", "redkey", "-D", f"{base}/data", "-c", "fast", "--no-sync")
    (base / "data" / "standby.signal").touch()
    promoted = Cluster(base)
    try:
        promoted.execute("SELECT pg_promote()")
        yield promoted
    finally:
        promoted.stop()


class Servers:
    """Two servers that reach their database through a proxy."""

    def __init__(self, proxy: Proxy, database: str, home: Path, stack: ExitStack) -> None:
        self.proxy, self.url = proxy, proxy.url(database)
        self.homes = [home / name for name in ("one", "two")]
        self.stores = [stack.enter_context(PostgresStore(self.url)) for _ in self.homes]
        for store, place in zip(self.stores, self.homes, strict=True):
            place.mkdir()
            store.join(f"http://{place.name}", "1", place)

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
    with replica() as promoted:
        servers.fail_over(promoted)
        wait_until(lambda: refusal(one, topic) == "")
        assert refusal(two, topic) == ""
        assert one.head(topic).sequence >= 5


def test_a_failover_that_lost_a_commit_keeps_writes_closed(servers: Servers) -> None:
    one, two = servers.stores
    topic = one.create_topic()
    append(one, topic, 3)
    one.known_head(topic)
    with replica() as promoted:
        append(one, topic, 1)
        servers.fail_over(promoted)

        def missing() -> list[str]:
            name = servers.url.rpartition("/")[2].partition("?")[0]
            rows = promoted.execute("SELECT missing FROM redkey.server WHERE missing <> ''", database=name)
            return [text for (text,) in rows]

        wait_until(missing)
        assert missing() == [f"topic {topic} ends at 3, not 4"]
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
        store.join("http://one", "1", tmp_path)
    (tmp_path / "seen" / "1.0.1001").write_bytes(b"redkey/log/wk_1/e1\n7\nroot\n\n")
    with PostgresStore(postgres_url) as store, pytest.raises(StoreRefused) as refused:
        store.join("http://one", "1", tmp_path)
    assert refused.value.code == "head_behind_checkpoint"
