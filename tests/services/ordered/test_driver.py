"""Servers on one topic: requests go to the network and are answered by what is ordered there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import msgspec
import pytest

from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim
from redkey.commands.decision import Refused
from redkey.errors import NetworkAway, RedKeyError
from redkey.ledger.content import body
from redkey.ledger.fees import Price
from redkey.ledger.network import Charge
from redkey.ledger.ports import Content
from redkey.ledger.record import Head, Record
from redkey.plans.model import read_plan
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.services.ordered.messages import left_out
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.stores.clock import SystemClock
from tests.harness.desk import QUEUE, CountedIds, HandClock
from tests.harness.office import Office
from tests.harness.ordered import NETWORK, OPERATOR, PARTNER, STRANGER, TOPIC, ListTopic, OrderedDesk
from tests.harness.ordered_servers import Server, join, running, until
from tests.harness.runs import plan_of, step


class Shared:
    """One topic for several servers and their threads; it can be away, and it can lag."""

    def __init__(self) -> None:
        self.list, self._lock = ListTopic(HandClock(SystemClock().wall())), Lock()
        self.away: RedKeyError | None = None
        # How many of the last messages the mirror does not show yet.
        self.lag = self.drawn = 0
        # While it is not set, what the operator's account submits is in doubt.
        self.certain = Event()
        self.certain.set()

    def member(self, payer: str) -> Member:
        """The topic as one account writes to it."""
        return Member(self, payer)


class Member:
    """The topic as one account writes to it."""

    network, topic = NETWORK, TOPIC
    noticed: Mapping[str, int] = {}

    def __init__(self, shared: Shared, payer: str) -> None:
        self._shared, self.payer = shared, payer

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Nothing is streamed here: readers look by themselves."""
        return lambda: None

    def refresh(self) -> None:
        """Prices never change here."""

    def price(self, size: int, reserved: int = 0) -> Price:
        return Price(1000, 1000)

    def draw(self) -> str:
        with self._shared._lock:
            self._shared.drawn += 1
            return f"{self.payer}-1-{self._shared.drawn:09d}"

    def charged(self, transaction_id: str) -> Charge:
        return Charge("recorded", Price(1000, 1000))

    def submit(self, message: bytes, transaction_id: str) -> int:
        if self.payer == OPERATOR:
            assert self._shared.certain.wait(60)
        with self._shared._lock:
            if self._shared.away is not None:
                raise self._shared.away
            self._shared.list.clock.advance(0.001)
            return self._shared.list.order(message, self.payer)

    def read(self, head: Head) -> list[Record]:
        with self._shared._lock:
            shown = len(self._shared.list.messages) - self._shared.lag
            return self._shared.list.messages[head.sequence : max(head.sequence, min(shown, head.sequence + 100))]


async def two_servers(shared: Shared) -> tuple[Server, Server]:
    """A workspace with the servers of two organisations, before they follow."""
    return Server(shared.member(OPERATOR), 1), Server(shared.member(PARTNER), 2)


def assert_agree(shared: ListTopic, *servers: Server) -> None:
    """All servers, and a stranger that reads the topic alone, have the same records and rows."""
    reader = OrderedDesk(shared, STRANGER, lane=9)
    reader.read()
    for server in servers:
        assert server.store.read(server.topic, 0, 10_000) == reader.ledger()
        assert rows_digest(server.store, server.topic) == replay_digest(reader.store, reader.topic)


def scene(test: Callable[..., Awaitable[None]]) -> Callable[[], None]:
    """A test with two servers on one topic."""

    def run() -> None:
        async def inside() -> None:
            shared = Shared()
            ours, theirs = await two_servers(shared)
            async with running(ours, theirs):
                await join(ours, theirs)
                await test(shared, ours, theirs)

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


@scene
async def test_of_thirty_two_claimants_at_two_servers_one_wins(shared: Shared, ours: Server, theirs: Server) -> None:
    agents = [await ours.agent(f"agent-{number}") for number in range(32)]
    task = await ours.task()
    await until(lambda: theirs.read_to() == ours.read_to())
    servers = [ours, theirs] * 16
    asked = [server.ask(ClaimTask(task, agent)) for server, agent in zip(servers, agents, strict=True)]
    outcomes = await asyncio.gather(*asked)
    assert sum(outcome.first("task.claimed") is not None for outcome in outcomes) == 1
    assert sum(outcome.first("task.claim_missed") is not None for outcome in outcomes) == 31
    await until(lambda: theirs.read_to() == ours.read_to())
    assert_agree(shared.list, ours, theirs)


@scene
async def test_an_agent_that_waits_gets_a_task_that_the_other_server_creates(
    shared: Shared, ours: Server, theirs: Server
) -> None:
    agent = await ours.agent("ada")
    await until(lambda: theirs.read_to() == ours.read_to())
    waiting = theirs.wait_for_task(agent)
    await until(lambda: theirs.coordinator.waiting == 1)
    task = await ours.task()
    assert (await waiting).first("task.claimed") is not None
    await until(lambda: ours.coordinator.peek(ours.topic).tasks[task].agent_id == agent)


@scene
async def test_a_completion_brings_the_next_task(shared: Shared, ours: Server, theirs: Server) -> None:
    agent, tasks = await ours.agent("ada"), [await ours.task() for _ in range(2)]
    claim = await ours.hold(tasks[0], agent)
    outcome = await ours.complete(claim, claim_next=ClaimNext(QUEUE, agent))
    assert outcome.next is not None
    assert outcome.next.first("task.claimed") is not None


@scene
async def test_a_request_waits_until_the_mirror_shows_everything_before_it(
    shared: Shared, ours: Server, theirs: Server
) -> None:
    agent, task = await ours.agent("ada"), await ours.task()
    shared.lag = 1
    claim = ours.ask(ClaimTask(task, agent))
    await until(lambda: len(shared.list.messages) > ours.read_to())
    assert not claim.done()
    shared.lag = 0
    assert (await claim).first("task.claimed") is not None


@scene
async def test_a_network_that_is_away_is_told_to_the_caller_and_nothing_is_recorded(
    shared: Shared, ours: Server, theirs: Server
) -> None:
    before = len(shared.list.messages)
    shared.away = NetworkAway("no node answers")
    with pytest.raises(Refused) as refused:
        await ours.task()
    assert (refused.value.status, refused.value.code) == (503, "order_unavailable")
    shared.away = None
    assert len(shared.list.messages) == before
    assert await ours.task()


@scene
async def test_messages_in_doubt_do_not_keep_the_server_from_reading(
    shared: Shared, ours: Server, theirs: Server
) -> None:
    await until(lambda: theirs.read_to() == ours.read_to())
    with ThreadPoolExecutor(2) as senders:
        ours.driver._means = msgspec.structs.replace(ours.driver._means, threads=senders)
        shared.certain.clear()
        doubtful = [ours.ask(ours.new_task()) for _ in range(3)]
        try:
            task = await theirs.task()
            await until(lambda: task in ours.coordinator.peek(ours.topic).tasks)
            assert not any(one.done() for one in doubtful)
        finally:
            shared.certain.set()
        await asyncio.gather(*doubtful)


@scene
async def test_a_tick_lets_a_lease_expire_in_silence(shared: Shared, ours: Server, theirs: Server) -> None:
    agent, task = await ours.agent("ada"), await ours.task()
    await ours.hold(task, agent, 5)
    shared.list.clock.advance(6)
    world = ours.coordinator.peek(ours.topic)
    assert world.tasks[task].state == "claimed"
    ours.driver._means = msgspec.structs.replace(ours.driver._means, clock=shared.list.clock)
    ours.coordinator.tick(ours.topic)
    await until(lambda: ours.coordinator.peek(ours.topic).tasks[task].state == "available")
    await until(lambda: theirs.read_to() == ours.read_to())
    assert [one.void for one in left_out(ours.store, ours.topic)] == ["not_a_request"]
    assert_agree(shared.list, ours, theirs)


@scene
async def test_structure_comes_from_another_server_before_its_run_starts(
    shared: Shared, ours: Server, theirs: Server
) -> None:
    plan = plan_of(step("draft"), step("text", "draft"))
    prepared = prepare(plan, CountedIds(7).nonce)
    for role in missing_roles(read_plan(plan), (), CountedIds(8).nonce)[0]:
        await ours.do(role)
    run = start_command(prepared, "wf_" + ours.ids.ulid(), QUEUE, ())
    await ours.do(run, contents=prepared.contents)
    structure = prepared.contents[0]
    await until(lambda: theirs.driver.waits_for == structure.sha256)
    asked, bodies = 0, theirs.bodies

    def fetch(sha256: str) -> bytes | None:
        nonlocal asked
        asked += 1
        return bodies.get(sha256)

    theirs.driver._means = msgspec.structs.replace(theirs.driver._means, fetch=fetch)
    theirs.bodies[structure.sha256] = b"something else"
    # The first answer after this one may have been on its way; the second one is looked at and thrown away.
    await until(lambda: asked > 2)
    assert theirs.driver.waits_for == structure.sha256
    for sha256 in (structure.sha256, body(b"something else").sha256):
        assert theirs.store.content(theirs.topic, sha256) is None
    assert theirs.read_to() < ours.read_to()
    theirs.bodies[structure.sha256] = structure.data
    await until(lambda: theirs.read_to() == ours.read_to())
    assert theirs.driver.waits_for == ""
    found = theirs.store.content(theirs.topic, structure.sha256)
    assert found == Content(structure.sha256, structure.data, pinned=True)


@scene
async def test_a_repeated_request_is_answered_from_the_ledger(shared: Shared, ours: Server, theirs: Server) -> None:
    command = ours.new_task()
    first = await ours.do(command, idem="a" * 32, body="b" * 16)
    await until(lambda: theirs.read_to() == ours.read_to())
    again = await theirs.do(command, idem="a" * 32, body="b" * 16)
    assert (again.event_id, again.repeated) == (first.event_id, True)


@scene
async def test_a_refusal_needs_no_message(shared: Shared, ours: Server, theirs: Server) -> None:
    before = len(shared.list.messages)
    with pytest.raises(Refused):
        await ours.do(CompleteClaim("clm_" + ours.ids.ulid()))
    assert len(shared.list.messages) == before


def test_a_server_that_is_not_connected_writes_nothing_to_an_ordered_workspace() -> None:
    async def inside() -> None:
        shared = Shared()
        ours = Server(shared.member(OPERATOR), 1)
        async with running(ours):
            await ours.begin()
        other = Office(ours.store, CountedIds(5)).open(ours.topic, ours.admin.workspace_id)
        before = ours.store.head(ours.topic)
        with pytest.raises(RedKeyError) as refused:
            await other.task()
        assert refused.value.code == "order_unavailable"
        assert ours.store.head(ours.topic) == before
        await other.coordinator.stop()

    asyncio.run(inside())


def test_a_server_goes_on_where_it_stopped() -> None:
    async def inside() -> None:
        shared = Shared()
        ours = Server(shared.member(OPERATOR), 1)
        async with running(ours):
            await ours.begin()
            await ours.task()
        # The same topic from the beginning, in pieces.
        again = Server(shared.member(OPERATOR), 3).open(ours.topic, ours.admin.workspace_id)
        async with running(again):  # type: ignore[arg-type]
            await until(lambda: again.read_to() == ours.read_to())  # type: ignore[attr-defined]
            await again.task()
        assert_agree(shared.list, again)  # type: ignore[arg-type]

    asyncio.run(inside())
