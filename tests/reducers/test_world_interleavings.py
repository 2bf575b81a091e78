"""A network that orders after submission: the same wires in every possible order.

Clients submit requests, two servers watch the order and submit what is due at the prefix they have seen; nobody
knows where a wire will stand. Whatever the order, folding the topic and replaying the task's stream alone agree on
state and holder at every place, exactly one attempt wins, every attempt is answered once, and a copy of a wire that
is there already changes nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest

from redkey.commands.claims import ClaimTask, CompleteClaim, HeartbeatClaim, ReleaseClaim, StartClaim
from redkey.commands.decide import decide
from redkey.commands.decision import Refused
from redkey.commands.draft import seal
from redkey.commands.due import follow_ups
from redkey.commands.past import NoPast
from redkey.commands.tasks import CancelTask
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import SECOND, World
from redkey.services.outcome import Settled
from redkey.wire.envelope import wire_from
from tests.harness.desk import Desk
from tests.harness.invariants import attempts_are_answered_once, holds_are_single, only_listed_transitions
from tests.harness.replays import Replayed
from tests.harness.snapshot import snapshot

Wire = dict[str, Any]


class Net:
    """A small store whose submitted wires wait until the test orders the next one."""

    def __init__(self, desk: Desk, task_id: str) -> None:
        self.world = World()
        self.task_id, self.ids, self.admin = task_id, desk.ids, desk.admin
        self.now = desk.world.timestamp
        self.ordered: list[tuple[Wire, str | None]] = []
        self.alone = Replayed()
        self._seen: set[str] = set()
        for one in _BEFORE:
            fold(self.world, Changes(), wire_from(one.wire), one.sequence, one.timestamp, LOCAL_PAYER)
            self._seen.add(one.wire["wire_id"])
            if one.wire["stream"]["stream_id"].startswith(f"task:{task_id}:"):
                self.alone.apply(one.wire)

    def order(self, wire: Wire) -> str | None:
        """Give the wire the next place in the order, as the network does."""
        self.now += SECOND
        place = self.world.sequence + 1
        # A mirror knows every wire id it has shown before.
        copied = wire["wire_id"] in self._seen
        self._seen.add(wire["wire_id"])
        void = fold(self.world, Changes(), wire_from(wire), place, self.now, LOCAL_PAYER, copied=copied)
        if wire["stream"]["stream_id"].startswith(f"task:{self.task_id}:"):
            alone = self.alone.apply(wire)
            assert (alone is None) == (void is None), f"{wire['type']}: alone {alone}, in the topic {void}"
        self.ordered.append((wire, void))
        self.agree()
        return void

    def agree(self) -> None:
        """Check that topic and stream agree on state and holder."""
        task = self.world.tasks[self.task_id]
        attempt = self.alone.attempts[f"task:{self.task_id}:attempt:{task.attempt}"]
        held = attempt.hold
        assert (attempt.state, held.claim_id if held else "", held.agent_id if held else "") == (
            task.state,
            task.claim_id,
            task.agent_id,
        )

    def derived(self) -> list[Wire]:
        """Return what a server that has read everything would submit."""
        return [seal(self.world, draft, self.now, self.ids).as_json() for draft in follow_ups(self.world)]

    def request(self, command: Any) -> list[Wire]:
        """Return what a server would submit for a caller now; nothing if it refuses."""
        try:
            drafts = decide(self.world, command, self.admin, self.now, self.ids, NoPast()).drafts
        except Refused:
            return []
        return [seal(self.world, draft, self.now, self.ids).as_json() for draft in drafts]

    def settle(self) -> None:
        """Order all remaining wires of the servers; clients submit nothing more."""
        for _ in range(20):
            wires = self.derived()
            if not wires:
                return
            for wire in wires:
                self.order(wire)
        raise AssertionError("no end")

    def check(self) -> None:
        applied = [wire for wire, void in self.ordered if void is None]
        everything = [*(one.wire for one in _BEFORE), *applied]
        attempts_are_answered_once(everything)
        on_task = [wire for wire in everything if wire["stream"]["stream_id"].startswith("task:")]
        holds_are_single(on_task)
        only_listed_transitions(on_task)
        wins = [wire["payload"]["claim_id"] for wire in applied if wire["type"] == "task.claimed"]
        assert len(wins) <= 1, wins
        assert not self.world.pending
        assert not self.world.agenda


_BEFORE: list[Settled] = []


def scene() -> tuple[Desk, str, list[str]]:
    desk = Desk()
    agents = [desk.agent("ada"), desk.agent("bob")]
    task = desk.task()
    _BEFORE[:] = desk.records()
    return desk, task, agents


def late_scene(*, recorded: bool) -> tuple[Desk, str, list[str], str]:
    """Return a world in which Ada's lease has expired, recorded or not, and her claim."""
    desk = Desk()
    agents = [desk.agent("ada"), desk.agent("bob")]
    task = desk.task()
    claim_id = desk.hold(task, agents[0], 60)
    desk.clock.advance(61)
    if recorded:
        desk.tick()
    _BEFORE[:] = desk.records()
    return desk, task, agents, claim_id


# A step is one act of a server: submit a wire, or have one ordered. An interleaving is an order of steps.
Step = Callable[["Play"], None]


class Play:
    """One interleaving, with the submitted wires that are not ordered yet."""

    def __init__(self, desk: Desk, task: str, agents: list[str]) -> None:
        self.net = Net(desk, task)
        self.task, self.agents = task, agents
        self.flying: list[Wire] = []

    def attempt(self, number: int) -> None:
        self.flying += self.net.request(ClaimTask(self.task, self.agents[number], 60))

    def server(self) -> None:
        """A server submits what is due at its prefix; another server may submit the same."""
        self.flying += self.net.derived()

    def cancel(self) -> None:
        self.flying += self.net.request(CancelTask(self.task))

    def start(self) -> None:
        for claim_id in list(self.net.world.claims):
            self.flying += self.net.request(StartClaim(claim_id))

    def complete(self) -> None:
        for claim_id in list(self.net.world.claims):
            self.flying += self.net.request(CompleteClaim(claim_id))

    def order_first(self) -> None:
        if self.flying:
            self.net.order(self.flying.pop(0))

    def order_last(self) -> None:
        if self.flying:
            self.net.order(self.flying.pop())

    def finish(self) -> None:
        for wire in [*self.flying]:
            self.net.order(wire)
        self.net.settle()
        self.net.check()


def interleavings(threads: list[list[Step]]) -> Iterator[list[Step]]:
    """Return every interleaving of the threads; each keeps its own order."""
    if not any(threads):
        yield []
        return
    for index, thread in enumerate(threads):
        if thread:
            rest = [other[1:] if place == index else other for place, other in enumerate(threads)]
            for more in interleavings(rest):
                yield [thread[0], *more]


def run_all(threads: list[list[Step]]) -> int:
    desk, task, agents = scene()
    count = 0
    for steps in interleavings(threads):
        play = Play(desk, task, agents)
        for step in steps:
            step(play)
        play.finish()
        count += 1
    return count


def ada(play: Play) -> None:
    play.attempt(0)


def bob(play: Play) -> None:
    play.attempt(1)


@pytest.mark.parametrize("order", [Play.order_first, Play.order_last], ids=["oldest first", "newest first"])
def test_two_attempts_and_two_servers_in_every_order(order: Step) -> None:
    count = run_all([[ada], [bob], [Play.server, Play.server], [order, order, order]])
    assert count == 420


@pytest.mark.parametrize("order", [Play.order_first, Play.order_last], ids=["oldest first", "newest first"])
def test_a_cancel_among_them_in_every_order(order: Step) -> None:
    run_all([[ada], [bob], [Play.server], [Play.cancel], [order, order, order]])


@pytest.mark.parametrize("order", [Play.order_first, Play.order_last], ids=["oldest first", "newest first"])
def test_start_complete_and_cancel_of_the_winner_in_every_order(order: Step) -> None:
    """Ada's attempt is ordered and both servers have its outcome; all other wires then come in any order."""
    desk, task, agents = scene()
    count = 0
    for steps in interleavings([[bob], [Play.start, Play.complete], [Play.cancel], [Play.server], [order, order]]):
        play = Play(desk, task, agents)
        ada(play)
        play.order_first()
        play.server()
        play.server()
        play.order_first()
        for step in steps:
            step(play)
        play.finish()
        count += 1
    assert count == 1260


def test_every_order_of_the_wires_of_two_attempts_and_their_outcomes() -> None:
    """All permutations of what two attempts, two servers' outcomes, start, complete and cancel could be."""
    desk, task, agents = scene()
    net = Net(desk, task)
    first = net.request(ClaimTask(task, agents[0], 60))[0]
    second = net.request(ClaimTask(task, agents[1], 60))[0]
    net.order(first)
    claimed = net.derived()[0]
    net.order(claimed)
    claim_id = claimed["payload"]["claim_id"]
    start, complete = net.request(StartClaim(claim_id))[0], net.request(CompleteClaim(claim_id))[0]
    cancel = net.request(CancelTask(task))[0]
    wires = [first, second, claimed, copy.deepcopy(claimed), start, complete, cancel]
    winners = set()
    for order in permutations(range(len(wires))):
        net = Net(desk, task)
        for index in order:
            net.order(wires[index])
        net.settle()
        applied = [wire for wire, void in net.ordered if void is None]
        wins = [wire["payload"]["claim_id"] for wire in applied if wire["type"] == "task.claimed"]
        assert len(wins) <= 1
        winners.add(wins[0] if wins else "")
        assert not net.world.pending
    assert len(winners) >= 2, "some orders cancel before anybody wins"


def late(claim_id: str, command: Callable[[str], Any]) -> Step:
    """The old holder acts: depending on its prefix it continues, resumes its claim, or is refused."""

    def act(play: Play) -> None:
        play.flying += play.net.request(command(claim_id))

    return act


@pytest.mark.parametrize("order", [Play.order_first, Play.order_last], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("command", [HeartbeatClaim, StartClaim, CompleteClaim, ReleaseClaim])
@pytest.mark.parametrize("recorded", [True, False], ids=["expiry recorded", "expiry not recorded"])
def test_a_late_holder_against_a_claim_in_flight_in_every_order(
    order: Step, command: Callable[[str], Any], recorded: bool
) -> None:
    """The first wire in the order wins: the resumed claim, or the claim that was settled before."""
    desk, task, agents, claim_id = late_scene(recorded=recorded)
    ends: Counter[tuple[str, str]] = Counter()
    for steps in interleavings([[bob], [late(claim_id, command)], [Play.server, Play.server], [order, order, order]]):
        play = Play(desk, task, agents)
        play.net.now = max(play.net.now, desk.clock.wall())
        for step in steps:
            step(play)
        play.finish()
        found = play.net.world.tasks[task]
        ends[found.state, found.winner_agent_id] += 1
    # Both come about: the old holder goes on, and the other has it.
    assert {winner for _, winner in ends} == set(agents), ends


@pytest.mark.parametrize("recorded", [True, False], ids=["expiry recorded", "expiry not recorded"])
def test_every_order_of_the_wires_of_a_late_holder_and_a_claim(recorded: bool) -> None:
    """The resumed claim, its completion, the other attempt and all derived wires, in every possible order: a server's
    wire comes after those that the server had read when it created it."""
    desk, task, agents, claim_id = late_scene(recorded=recorded)

    def begin() -> Net:
        net = Net(desk, task)
        net.now = max(net.now, desk.clock.wall())
        return net

    net = begin()
    acts = net.request(CompleteClaim(claim_id))
    chain = net.request(ClaimTask(task, agents[1], 60))
    net.order(chain[0])
    while settled := net.derived():
        chain += settled
        for wire in settled:
            net.order(wire)
    assert [wire["type"] for wire in chain][-1] == "task.claimed"
    # Two servers have written the last outcome.
    wires = [*acts, *chain, copy.deepcopy(chain[-1])]
    winners = set()
    for order in permutations(range(len(wires))):
        seen = [index for index in order if index >= len(acts)]
        if seen != sorted(seen):
            continue
        net = begin()
        for index in order:
            net.order(wires[index])
        net.settle()
        net.check()
        winners.add(net.world.tasks[task].winner_agent_id)
    assert winners == set(agents)


def test_void_copies_change_nothing_at_all() -> None:
    desk, task, agents = scene()
    net = Net(desk, task)
    for wire in net.request(ClaimTask(task, agents[0], 60)):
        net.order(wire)
    for wire in net.derived():
        net.order(wire)
    before = snapshot(net.world)
    for wire, _ in list(net.ordered):
        if wire["stream"]["stream_id"].startswith("task:"):
            assert net.order(wire) == "duplicate_wire"
    after = snapshot(net.world)
    for volatile in ("sequence", "timestamp"):
        before.pop(volatile)
        after.pop(volatile)
    assert after == before


def test_two_servers_give_a_consequence_the_same_id() -> None:
    desk, task, agents = scene()
    net = Net(desk, task)
    for wire in net.request(ClaimTask(task, agents[0], 60)):
        net.order(wire)
    one, other = net.derived(), net.derived()
    assert [wire["wire_id"] for wire in one] == [wire["wire_id"] for wire in other]


def test_a_loser_to_an_undecided_attempt_waits_for_the_winner() -> None:
    desk, task, agents = scene()
    net = Net(desk, task)
    attempts = [net.request(ClaimTask(task, agent, 60))[0] for agent in agents]
    for wire in attempts:
        net.order(wire)
    assert [wire["type"] for wire in net.derived()] == ["task.claimed"]
    net.settle()
    missed = net.ordered[-1][0]
    assert missed["type"] == "task.claim_missed"
    assert missed["payload"]["winning_claim_id"] == attempts[0]["payload"]["claim_id"]
