"""Two servers of two organisations on one Hedera topic, the stand-in with faults: they agree on every winner."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.commands.claims import ClaimTask
from redkey.errors import NetworkAway, NetworkRefused
from redkey.hedera.network import Network, Operator, Terms
from redkey.hedera.ordering import HederaTopic
from redkey.hedera.prices import FeeTerms, TopicPrices
from redkey.hedera.reader import TopicReader
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from redkey.ledger.fees import HBAR, USD, submit_price
from redkey.ledger.network import Charge
from redkey.plans.model import read_plan
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.reducers.world import World
from redkey.services.dump import dump
from redkey.services.ordered.work import OrderedWork
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.sqlite import SqliteStore
from tests.harness.desk import QUEUE, CountedIds
from tests.harness.ordered_servers import Server, join, running, until
from tests.harness.runs import plan_of, step
from tests.harness.workshop import checked

RATES = {
    "lose_request": 0.05,
    "lose_answer": 0.1,
    "busy": 0.1,
    "duplicate": 0.1,
    "delay": 0.1,
    "lose_receipt": 0.1,
    "repeat": 0.1,
    "skip": 0.05,
    "change_byte": 0.05,
    "lag": 0.1,
    "mirror_down": 0.05,
}


def test_of_thirty_two_claimants_at_two_servers_one_wins_whatever_the_network_does(
    standin: StandIn, faults: Faults, network: Network, topic: str
) -> None:
    """Everybody knows the winner, each message is recorded once, and the mirror alone gives the same ledger."""
    partner = Network(network.addresses, Operator(*standin.open_account()))
    ours, theirs = (
        Server(HederaTopic(one, topic, TopicPrices(one, topic, FeeTerms(USD), keys)), lane)
        for lane, (one, keys) in enumerate(((network, ()), (partner, (network.operator.key,))), 1)
    )

    async def race() -> None:
        async with running(ours, theirs):
            await join(ours, theirs)
            agents = await asyncio.gather(*(ours.agent(f"agent-{number}") for number in range(32)))
            task = await ours.task()
            await until(lambda: theirs.read_to() == ours.read_to())
            for name, rate in RATES.items():
                faults.rate(name, rate)
            servers = [ours, theirs] * 16
            asked = [server.ask(ClaimTask(task, agent)) for server, agent in zip(servers, agents, strict=True)]
            outcomes = await asyncio.gather(*asked)
            faults.clear()
            assert sum(one.first("task.claimed") is not None for one in outcomes) == 1
            assert sum(one.first("task.claim_missed") is not None for one in outcomes) == 31
            last = len(standin.state.topics[topic].messages)
            await until(lambda: theirs.read_to() == ours.read_to() == last)

    asyncio.run(race())
    noticed = Counter[str]()
    for server in (ours, theirs):
        noticed.update(server.driver.network.noticed)
    assert bool(noticed["repeated"]) == bool(faults.happened["repeat"]), noticed
    assert noticed.total() > 2, "what the mirror did wrong is told"
    partner.close()
    assert sum(faults.happened.values()) > 10
    wires = [message.record.wire for message in standin.state.topics[topic].messages]
    assert len(wires) == len(set(wires)), "each message is recorded once"
    assert_rebuilt(network, topic, ours, theirs)


def assert_rebuilt(network: Network, topic: str, *servers: Server) -> None:
    """A store that has only the mirror gets the same records and rows."""
    store = MemoryStore(SystemClock(), MemoryDisk())
    local = store.create_topic(servers[0].topic)
    with store.write(local) as unit:
        work = OrderedWork(unit, local, World(), CountedIds())
        work.project(chain.from_iterable(iter(TopicReader(network.mirror, topic).read, [])))
        work.finish()
    for server in servers:
        assert server.store.read(local, 0, 10_000) == store.read(local, 0, 10_000)
        assert rows_digest(server.store, local) == replay_digest(store, local)


def lived_in(network: Network, topic: str) -> Server:
    """A workspace on the topic with some tasks and a run, whose server has ended."""
    server = Server(HederaTopic(network, topic, TopicPrices(network, topic, FeeTerms(USD))), 1)

    async def live() -> None:
        async with running(server):
            await server.begin()
            agent, tasks = await server.agent("ada"), [await server.task() for _ in range(3)]
            await server.complete(await server.hold(tasks[0], agent))
            await server.hold(tasks[1], agent)
            plan = plan_of(step("draft"), step("text", "draft"))
            for role in missing_roles(read_plan(plan), (), CountedIds(8).nonce)[0]:
                await server.do(role)
            prepared = prepare(plan, CountedIds(7).nonce)
            run = start_command(prepared, "wf_" + server.ids.ulid(), QUEUE, ())
            await server.do(run, contents=prepared.contents)

    asyncio.run(live())
    return server


def ledger_import(standin: StandIn, topic: str, directory: Path, *more: str) -> Result:
    """Run the command against the mirror of the stand-in."""
    asked = ("ledger", "import", str(directory), "--topic", topic, "--network", "local", "--mirror", standin.rest)
    return CliRunner().invoke(main, [*asked, *more])


def test_a_workspace_is_rebuilt_from_the_mirror(standin: StandIn, network: Network, topic: str, tmp_path: Path) -> None:
    server = lived_in(network, topic)
    network.submit(topic, b"no wire", network.ids.draw(), Terms(HBAR))
    short = ledger_import(standin, topic, tmp_path / "again")
    assert (short.exit_code, "--structures" in short.output) == (1, True), short.output
    assert not (tmp_path / "again").exists()
    # A dump of the server has the structure that the run needs.
    (tmp_path / "dump").write_bytes(b"".join(dump(server.store, [server.topic])))
    done = ledger_import(standin, topic, tmp_path / "again", "--structures", str(tmp_path / "dump"), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["workspace_id"], found["left_out"]) == (server.admin.workspace_id, {"wire_invalid": 1})
    with SqliteStore(tmp_path / "again") as store:
        assert store.read(server.topic, 0, 10_000) == server.store.read(server.topic, 0, 10_000)
        assert rows_digest(store, server.topic) == rows_digest(server.store, server.topic)
    report = checked(tmp_path / "again")
    assert report.clean, report.faults


@pytest.mark.parametrize(("offset", "code"), [(3600, "clock_ahead"), (-3600, "transaction_expired")])
def test_a_clock_that_is_off_by_an_hour_is_named_and_nothing_is_recorded(
    standin: StandIn, network: Network, topic: str, offset: int, code: str
) -> None:
    """And the fee that was reserved is free at once, not when the transaction could no longer be recorded."""
    off = Network(network.addresses, network.operator, clock=lambda: time.time_ns() + offset * 10**9)
    writing = HederaTopic(off, topic, TopicPrices(off, topic, FeeTerms(USD)))
    writing.refresh()
    name = writing.draw()
    with pytest.raises(NetworkRefused) as refused:
        writing.submit(b"a message", name)
    assert (refused.value.code, "NTP" in refused.value.message) == (code, True)
    assert writing.charged(name) == Charge("lost")
    assert standin.state.topics[topic].messages == []
    off.close()


def test_a_fee_that_the_balance_does_not_hold_beside_what_is_reserved_is_refused_before_anything_is_sent(
    standin: StandIn, network: Network, topic: str
) -> None:
    prices = TopicPrices(network, topic, FeeTerms(USD))
    with pytest.raises(NetworkAway):
        prices.known_price(100)
    prices.refresh()
    balance = standin.state.accounts[network.operator.account].balance
    price = prices.known_price(600)
    assert price.tinycents == submit_price(600)
    free = prices.rate().tinycents(balance) - price.tinycents
    assert prices.known_price(600, free - USD) == price
    with pytest.raises(NetworkRefused) as refused:
        prices.known_price(600, free + USD)
    assert refused.value.code == "balance_empty"


def test_import_names_what_is_wrong_and_leaves_nothing(standin: StandIn, topic: str, tmp_path: Path) -> None:
    cases = {
        topic: "holds no workspace",
        "0.0.999999": "holds no workspace",
        "1.0.5": "those are 0.0.N",
        "nothing": "--topic",
    }
    for name, text in cases.items():
        refused = ledger_import(standin, name, tmp_path / "data")
        assert refused.exit_code != 0
        assert text in refused.output, refused.output
    assert [*tmp_path.iterdir()] == []
