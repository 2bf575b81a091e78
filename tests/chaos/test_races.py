"""Ten thousand claims in flight: exactly one winner a task, and every loser is told the true one.

A real server, many client processes with many connections each, by TCP and by a Unix socket. Every claim is on its
way before the first is answered.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.bulk import Bulk
from redkey.readmodel.claim_history import claim_history
from redkey.stores.sqlite import SqliteStore
from tests.harness import invariants
from tests.harness.acts import begin_queue
from tests.harness.processes import Process, open_files, processes
from tests.harness.server import Server, serving

pytestmark = pytest.mark.xdist_group("races")

PROCESSES = 8
CLAIMS = 10_000
TASKS = 100
# Leaves room for everything else that a server has open.
CONNECTIONS = min(CLAIMS, open_files() - 500) // PROCESSES

Pair = tuple[str, str]
# All of them connect at once, from one address, before the first shows its key; on a busy machine that takes longer
# than a connection may wait with its first request.
CONFIG = "[limits]\nstrangers = 20000\nheader_seconds = 600\n"


class Crowd:
    """A server with a queue and its agents."""

    def __init__(self, server: Server, agents: list[str], tasks: list[str]) -> None:
        self.server, self.agents, self.tasks = server, agents, tasks

    def claim(self, pairs: list[Pair]) -> list[tuple[Pair, Any]]:
        """Let all claims be made at once; each with what it was told.

        The processes that claim are started for it: connections that nobody uses for a minute are closed.
        """
        shares = [pairs[index::PROCESSES] for index in range(PROCESSES)]
        told: list[tuple[Pair, Any]] = []
        with processes() as running:
            for number in range(PROCESSES):
                address = str(self.server.uds) if number % 4 == 3 else self.server.url
                running.append(Process("claimers", address, self.server.key, CONNECTIONS))
            for one in running:
                assert one.hear() == "ready"
            for claimer, share in zip(running, shares, strict=True):
                claimer.tell(json.dumps(share))
            for claimer, share in zip(running, shares, strict=True):
                for pair, (status, reply) in zip(share, json.loads(claimer.hear()), strict=True):
                    assert status == 200, reply
                    told.append((pair, reply))
            for one in running:
                one.finish()
        return told


async def _fill(data: Path, tasks: int, agents: int) -> tuple[list[str], list[str]]:
    with Bulk(data) as bulk:
        asked = [bulk.task("queue_race") for _ in range(tasks)]
        asked += [bulk.agent(f"racer-{number}") for number in range(agents)]
        await bulk.do(asked)
    commands = [command for command, _ in asked]
    return [one.task_id for one in commands[:tasks]], [one.agent_id for one in commands[tasks:]]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    directory = tmp_path_factory.mktemp("race")
    with serving(directory, "--uds", str(directory / "s"), config=CONFIG) as server, server.client() as client:
        begin_queue(client, "queue_race")
        tasks, agents = asyncio.run(_fill(server.data, TASKS + 1, CLAIMS))
        yield Crowd(server, agents, tasks)
        with SqliteStore(server.data, create=False) as store:
            invariants.check_topic(store, store.topics()[0])


def _judge(crowd: Crowd, pairs: list[Pair], told: list[tuple[Pair, Any]]) -> None:
    """One winner a task; the losers' replies, the ledger and the claim history all name it."""
    assert len(told) == len(pairs)
    winners = {task: reply for (task, _), reply in told if reply["status"] == "claimed"}
    assert Counter(reply["status"] for _, reply in told) == {
        "claimed": len(winners),
        "missed": len(pairs) - len(winners),
    }
    assert winners.keys() == {task for task, _ in pairs}
    with SqliteStore(crowd.server.data, create=False) as store:
        topic = store.topics()[0]
        wires = {wire["wire_id"]: wire for wire in invariants.decode(invariants.read_all(store, topic))}
        for (task, agent), reply in told:
            won = winners[task]
            wire = wires["wire_" + reply["eventId"][4:]]
            assert (reply["taskId"], reply["agentId"]) == (task, agent)
            if reply is won:
                assert wire["type"] == "task.claimed"
                assert wire["payload"]["claim_id"] == reply["claimId"]
                continue
            named = (won["claimId"], won["agentId"])
            assert (reply["winningClaimId"], reply["winningAgentId"]) == named
            assert wire["type"] == "task.claim_missed"
            assert wire["stream"]["stream_id"] == f"agent:{agent}"
            assert (wire["payload"]["winning_claim_id"], wire["payload"]["winning_agent_id"]) == named
        for (task, agent), reply in told[::97]:
            history, _ = claim_history(store, topic, agent, store.head(topic).sequence + 1, 500)
            (item,) = [one for one in history if one.task_id == task]
            assert (item.status, item.event_id) == (reply["status"], reply["eventId"])
            assert item.winning_claim_id == reply.get("winningClaimId", "")


def test_ten_thousand_claims_on_a_hundred_tasks_have_a_hundred_winners(crowd: Crowd) -> None:
    runners = crowd.agents[: CLAIMS // TASKS]
    pairs = [(task, agent) for agent in runners for task in crowd.tasks[:TASKS]]
    assert len(pairs) == CLAIMS
    _judge(crowd, pairs, crowd.claim(pairs))


def test_ten_thousand_agents_at_one_task_have_one_winner(crowd: Crowd) -> None:
    pairs = [(crowd.tasks[-1], agent) for agent in crowd.agents]
    assert len(pairs) == CLAIMS
    _judge(crowd, pairs, crowd.claim(pairs))
    with crowd.server.client() as client:
        _tell_over_http(client, pairs)


def _tell_over_http(client: Any, pairs: list[Pair]) -> None:
    """A loser finds its miss where the API shows it."""
    task, agent = pairs[-1]
    history = client.get(f"/agents/{agent}/claim-history").json["items"]
    winner = client.get(f"/tasks/{task}").json
    told = [item for item in history if item["taskId"] == task]
    assert len(told) == 1
    assert told[0]["status"] == "claimed" or told[0]["winningClaimId"] == winner["claim"]["claimId"]
