"""Two servers on one database beside a Hedera network: anchors, and a workspace that a topic orders."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from redkey.hedera.standin.server import StandIn
from redkey.ledger.anchor import anchored_checkpoint
from tests.cluster.conftest import sealed
from tests.cluster.test_event_loop import ROUND_TRIP_SECONDS, WATCHED, found
from tests.harness.acts import begin_queue, claim, create_task, register, until
from tests.harness.organisations import BUDGETS, settings_of
from tests.harness.postgres import cluster, database
from tests.harness.postgres_proxy import Proxy
from tests.harness.server import Server, serving

pytestmark = pytest.mark.xdist_group("cluster")

# Tests create faster than a caller of a public server may.
RATE = "[rate]\nper_second = 10000\nburst = 20000\n"


class Setting:
    """Two servers of one database with one account, the network, and the way to the database of both."""

    def __init__(self, standin: StandIn, one: Server, two: Server, proxy: Proxy, watch: Path) -> None:
        self.standin, self.one, self.two, self.proxy, self.watch = standin, one, two, proxy, watch

    def sizes(self) -> list[int]:
        """The sizes of the checkpoints on the public topic."""
        topics = self.standin.state.topics.values()
        [topic] = [one for one in topics if one.memo == "RedKey checkpoints"]
        return [anchored_checkpoint(message.record.wire).size for message in topic.messages]


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    """The first server is watched."""
    environment, watch = sealed(), tmp_path / "watch.json"
    with ExitStack() as stack:
        standin = stack.enter_context(StandIn())
        url = stack.enter_context(database())
        proxy = stack.enter_context(Proxy(cluster().socket))
        proxy.delay_seconds = ROUND_TRIP_SECONDS
        far = proxy.url(url.partition("@/")[2].partition("?")[0])
        settings_of(standin, tmp_path / "network")
        config = RATE + (tmp_path / "network" / "hedera.toml").read_text() + BUDGETS
        servers = []
        for name, python in (("one", (sys.executable, WATCHED, str(watch))), ("two", (sys.executable,))):
            (tmp_path / name).mkdir()
            begun = serving(
                tmp_path / name, "--store", far, environment=environment, config=config, name=name, python=python
            )
            servers.append(stack.enter_context(begun))
        yield Setting(standin, servers[0], servers[1], proxy, watch)


def anchored(setting: Setting, at: Server) -> None:
    """Record something at a server, and wait until a checkpoint that covers it is on the public topic."""
    before = len(setting.sizes())
    with at.client() as client:
        register(client, f"Agent {before}")
    until(lambda: len(setting.sizes()) > before)


def test_each_checkpoint_is_anchored_once_whichever_server_is_there_and_after_the_database_was_away(
    setting: Setting,
) -> None:
    anchored(setting, setting.one)
    anchored(setting, setting.two)
    setting.proxy.closed = True
    setting.proxy.cut_all()
    for server in (setting.one, setting.two):
        until(lambda server=server: "anchors wait for the store" in server.logs())
        assert server.process.poll() is None, "an outage of the database ends no server"
    setting.proxy.closed = False
    for server in (setting.one, setting.two):
        with server.client() as client:
            until(lambda client=client: client.get("/readyz").status == 200)
    anchored(setting, setting.two)
    setting.one.stop(signal.SIGKILL)
    anchored(setting, setting.two)
    sizes = setting.sizes()
    assert sizes == sorted(set(sizes)), "a checkpoint was recorded twice"


def test_an_ordered_workspace_has_one_winner_at_two_servers_of_a_database_and_holds_up_no_loop(
    setting: Setting,
) -> None:
    with setting.one.client() as operator:
        begun = said(operator.post("/workspaces", {"order": "network"}), 201)
    with setting.one.client(begun["apiKey"]) as one, setting.two.client(begun["apiKey"]) as two:
        until(lambda: two.get("/queues").status == 200)
        queue = begin_queue(one, "queue_ordered")
        # The second server finds the workspace within two seconds; until then it refuses what it would have to send.
        until(lambda: two.post("/roles", {"name": "Racers"}).status == 201)
        agents = [register(client, f"Racer {number}")["agentId"] for number, client in enumerate((one, two))]
        for _ in range(3):
            task = create_task(two, queue)
            statuses = [claim(client, task, agent)["status"] for client, agent in zip((one, two), agents, strict=True)]
            assert sorted(statuses) == ["claimed", "missed"]
            claims = one.get(f"/tasks/{task}").json
            assert claims["state"] == "claimed"
    watch = found(setting.watch)
    assert watch["places"] == {}, "the store was read on the event loop"


def said(reply: Any, status: int) -> dict[str, Any]:
    """The reply, which has this status."""
    assert reply.status == status, reply.text
    told: dict[str, Any] = json.loads(reply.text)
    return told
