"""A shared topic: anyone with the submit key can write any bytes, but cannot stop others or change their tasks.

An honest history is paid for by the operator. Between its records stand bytes that are no wires, wires that do not fit,
and valid wires aimed at what lives in the workspace, paid for by strangers, by an account that was let in and removed,
and by an agent that is let in and means harm.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redkey.commands.actor import Actor
from redkey.commands.claims import BlockClaim, StartClaim
from redkey.commands.decision import Refused
from redkey.commands.policies import AddParty, RemoveParty
from redkey.errors import UpgradeNeeded
from redkey.ledger.record import Record
from redkey.readmodel.ingest import fold_record
from redkey.reducers.changes import Changes
from redkey.reducers.fold import pass_over
from redkey.reducers.parties import JUDGED, copy_key
from redkey.reducers.world import RULES, World
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, catalogue
from redkey.wire.validate import validate
from tests.harness.desk import ADMIN_KEY, Desk, ref_of
from tests.harness.runs import RunDesk, plan_of, step
from tests.harness.snapshot import snapshot

Wire = dict[str, Any]
LOG, STRANGER, REMOVED, MALLORY, ADA = "0.0.100", "0.0.666", "0.0.600", "0.0.300", "0.0.200"
EXAMPLES = 400 if os.environ.get("REDKEY_TEST_LONG") == "1" else 25
# The largest number that the schema lets a wire have in its stream.
LARGEST_SEQ = 2**31 - 1
often = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def honest() -> tuple[tuple[bytes, int], ...]:
    """Return wires of honest work, with tasks left in every open state, and their times."""
    desk = RunDesk()
    operator = Actor(desk.workspace_id, ADMIN_KEY, frozenset({"operator"}))
    desk.start(plan_of(step("draft", approvalGate=True), step("text", "draft"), step("notes")), workers=1)
    ada, mallory = desk.agent("ada", "role_pm", "role_writer"), desk.agent("mallory", "role_writer")
    desk.do(AddParty(ADA, ada), operator)
    desk.do(AddParty(MALLORY, mallory), operator)
    desk.do(AddParty(REMOVED), operator)
    desk.do(RemoveParty(REMOVED), operator)
    desk.finish("draft")
    tasks = [desk.task(max_attempts=2) for _ in range(6)]
    desk.do(StartClaim(desk.hold(tasks[0], ada, 600)))
    desk.do(BlockClaim(desk.hold(tasks[1], ada), "ambiguity", ref_of("why")))
    desk.hold(tasks[2], ada, 5)
    desk.tick(7)
    desk.complete(desk.hold(tasks[3], ada))
    desk.hold(tasks[4], mallory, 600)
    desk.task(waits_for=(tasks[5],))
    return tuple((canonical(one.wire), one.timestamp) for one in desk.records())


@cache
def shapes() -> tuple[Wire, ...]:
    """Return a valid wire of every type and variant."""
    names = [name for name in files.names(FIXTURES, ".json") if ".valid" in name]
    found = [files.load(f"{FIXTURES}/{name}") for name in names]
    return tuple(wire for wire in found if isinstance(wire, dict) and wire.get("wire") == "1.1")


class Topic:
    """A reader of a shared topic that records the wires which applied."""

    def __init__(self) -> None:
        self.world = World()
        self.time = 0
        self._seen: set[tuple[str, str]] = set()
        self.reasons: Counter[str | None] = Counter()

    def order(self, message: bytes, payer: str, time: int = 0) -> str | None:
        """Give the bytes the next place in the order, as the network does."""
        self.time = max(self.time + 1, time)
        record = Record("0.0.9", self.world.sequence + 1, self.time, payer, b"", message)
        seen = lambda wire: copy_key(self.world, wire, payer) in self._seen  # noqa: E731
        wire, void = fold_record(self.world, Changes(), record, _Nowhere(), copied=seen)
        if wire is not None and void not in JUDGED:
            self._seen.add(copy_key(self.world, wire, payer))
        self.reasons[void] += 1
        return void

    def skip(self) -> None:
        """Skip a place in the order."""
        self.time += 1
        pass_over(self.world, Changes(), self.world.sequence + 1, self.time)


class _Nowhere:
    """A store that has only the structure of the honest plan."""

    def content(self, topic: str, sha256: str) -> Any:
        return _structures().get(sha256)


@cache
def _structures() -> dict[str, Any]:
    from redkey.services.planning import prepare

    desk = RunDesk()
    plan = plan_of(step("draft", approvalGate=True), step("text", "draft"), step("notes"))
    return {one.sha256: one for one in prepare(plan, desk.ids.nonce).contents}


_IDS = re.compile(r"^(task|clm|agt|queue|role|msg|gate|wf|key|wk|art|def)_")


class Aim:
    """Generates wires about entities that exist in a world."""

    def __init__(self, random: Random, world: World) -> None:
        self._random, self._world = random, world

    def wire(self, sender: str = "") -> Wire:
        """Return a valid wire of any type about existing entities."""
        world, random = self._world, self._random
        while True:
            wire = self._aimed(random.choice(shapes()))
            names = [f"agent:{agent.slug}" for agent in world.agents.values()]
            names += ["system", f"human:{ADMIN_KEY}", "runner:x", wire["sender"]]
            wire["sender"] = sender or random.choice(names)
            wire["wire_id"] = f"wire_0{random.getrandbits(120):030d}"[:31].replace("9", "8")
            if not validate(wire):
                return wire

    def junk(self) -> bytes:
        """Return bytes that are not a wire, or an invalid wire."""
        random = self._random
        whole = canonical(self.wire())
        broken = dict(self.wire())
        broken[random.choice(["type", "payload", "stream", "extra"])] = random.choice([None, {}, "task.teleported", 7])
        return random.choice(
            [
                random.randbytes(random.randrange(200)),
                whole[: random.randrange(len(whole))],
                whole.replace(b'"', b"'", 3),
                b"[" * 500,
                b'{"wire":"1.1","wire":"1.0"}',
                canonical(broken),
                canonical(self.wire() | {"wire": "2.0"}),
            ]
        )

    def _aimed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._aimed(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._aimed(part) for part in value]
        if not isinstance(value, str):
            return value
        if value.startswith("task:"):
            task = self._random.choice([*self._world.tasks.values()])
            return f"task:{task.task_id}:attempt:{task.attempt + self._random.choice([0, 0, 0, 1])}"
        kind, colon, rest = value.partition(":")
        if colon and _IDS.match(rest):
            return f"{kind}:{self._id(rest)}"
        return self._id(value) if _IDS.match(value) else value

    def _id(self, value: str) -> str:
        world = self._world
        known = {
            "task": world.tasks,
            "clm": {**world.claims, **world.expired, **world.pending},
            "agt": world.agents,
            "queue": world.queues,
            "role": world.roles,
            "msg": world.messages,
            "gate": world.gates,
            "wf": world.runs,
            "wk": {world.workspace.workspace_id: None},
        }.get(value.partition("_")[0])
        # Now and then something that is not there.
        return self._random.choice([*known]) if known and self._random.random() < 0.9 else value


def attacks(random: Random, topic: Topic, payers: tuple[str, ...]) -> Iterator[tuple[bytes, str]]:
    """Return a few hostile records."""
    for _ in range(random.choice([0, 0, 1, 3])):
        payer, aim = random.choice(payers), Aim(random, topic.world)
        sender = {ADA: "agent:ada", MALLORY: "agent:mallory"}.get(payer, "") if random.random() < 0.7 else ""
        yield (canonical(aim.wire(sender)) if random.random() < 0.8 else aim.junk()), payer


@given(st.integers(0, 2**32))
@often
def test_nothing_that_strangers_write_changes_anything(seed: int) -> None:
    """Hostile wires change the world no more than empty places would."""
    random, attacked, calm = Random(seed), Topic(), Topic()
    for place, (message, time) in enumerate(honest()):
        assert attacked.order(message, LOG, time) is None
        assert calm.order(message, LOG, time) is None
        if place > 10:
            strangers = (STRANGER,) if REMOVED in attacked.world.parties else (STRANGER, REMOVED)
            for harm, payer in attacks(random, attacked, strangers):
                assert attacked.order(harm, payer) in JUDGED
                calm.skip()
    assert snapshot(attacked.world) == snapshot(calm.world)
    assert attacked.world.misses == calm.world.misses


@given(st.integers(0, 2**32))
@often
def test_an_agent_that_means_harm_changes_no_task_of_others(seed: int) -> None:
    random, topic = Random(seed), Topic()
    for message, time in honest():
        assert topic.order(message, LOG, time) is None
    mallory = topic.world.slugs["mallory"]
    for _ in range(60):
        for harm, payer in attacks(random, topic, (MALLORY, STRANGER)):
            before = _others_tasks(topic.world, mallory)
            rules, roles = topic.world.workspace.rules, topic.world.agents[mallory].roles
            topic.order(harm, payer)
            after = _others_tasks(topic.world, mallory)
            assert {key: after.get(key) for key in before} == before, harm
            assert (topic.world.workspace.rules, topic.world.agents[mallory].roles) == (rules, roles)


def _others_tasks(world: World, agent_id: str) -> dict[str, Any]:
    """The states of the tasks that the agent neither holds nor may claim; anyone may add a message to them."""
    return {
        key: (task.state, task.attempt, task.claim_id, task.lease_expires_at, task.artifacts, task.gate, task.gate_id)
        for key, task in world.tasks.items()
        if agent_id not in (task.agent_id, task.expired_agent_id) and task.state not in ("available",)
    }


@given(st.integers(0, 2**32))
@often
def test_no_sequence_of_wires_stops_the_fold(seed: int) -> None:
    """The operator's wires may come in any order, twice, and about entities that never existed."""
    random, topic = Random(seed), Topic()
    wires = [*honest()]
    for message, time in wires[: random.randrange(_let_in(), len(wires))]:
        topic.order(message, LOG, time)
    everybody = (LOG, STRANGER, REMOVED, MALLORY, ADA)
    for _ in range(80):
        aim, payer = Aim(random, topic.world), random.choice(everybody)
        chance = random.random()
        if chance < 0.2:
            topic.order(aim.junk(), payer)
        elif chance < 0.5 or not topic.world.tasks:
            topic.order(*random.choice(wires)[:1], payer)
        else:
            wire = aim.wire()
            if payer == LOG and wire["type"] in ("workspace.rules_raised", "workflow.started", "credits.priced"):
                # The log raises rules when it means it, and keeps the structure that it names.
                continue
            if payer == LOG and "structure_ref" in wire["payload"]:
                continue
            topic.order(canonical(wire), payer)


def _let_in() -> int:
    """A workspace with all kinds of parties, and one removed."""
    return next(place for place, (message, _) in enumerate(honest(), 1) if b"party.removed" in message)


def _ordered() -> Topic:
    topic = Topic()
    for message, time in honest():
        assert topic.order(message, LOG, time) is None
    return topic


def _like(topic: Topic, kind: str, **payload: Any) -> Wire:
    wire: Wire = next(dict(one) for one in shapes() if one["type"] == kind)
    where = f"workspace:{topic.world.workspace.workspace_id}"
    return wire | {"stream": {"stream_id": where, "stream_seq": 99, "context_id": where}, "payload": payload}


def test_rules_are_raised_by_the_log_alone() -> None:
    topic = _ordered()
    raised = _like(topic, "workspace.rules_raised", rules=RULES + 97)
    for payer, reason in ((STRANGER, "unknown_payer"), (MALLORY, "sender_not_payer"), (REMOVED, "unknown_payer")):
        assert topic.order(canonical(raised), payer) == reason
    assert topic.order(canonical(raised | {"sender": "agent:mallory"}), MALLORY) == "not_allowed"
    assert topic.world.workspace.rules == RULES
    assert topic.order(canonical(raised), LOG) is None
    with pytest.raises(UpgradeNeeded):
        topic.order(b"anything", STRANGER)


def test_a_published_claim_id_gives_others_no_rights() -> None:
    """The first version accepted the completion of another account, because the fold ignored the payer."""
    topic = _ordered()
    task = next(one for one in topic.world.tasks.values() if one.state == "working")
    complete: Wire = next(dict(one) for one in shapes() if one["type"] == "task.complete")
    complete |= {
        "sender": "agent:ada",
        "stream": {"stream_id": f"task:{task.task_id}:attempt:1", "stream_seq": 5, "context_id": task.context_id},
        "payload": {
            **{name: complete["payload"][name] for name in ("cost_usd", "duration_seconds", "verification")},
            "claim_id": task.claim_id,
            "agent_id": task.agent_id,
            "artifact_ids": [],
        },
    }
    assert not validate(complete)
    assert topic.order(canonical(complete), STRANGER) == "unknown_payer"
    assert topic.order(canonical(complete), MALLORY) == "sender_not_payer"
    forged = complete | {"sender": "agent:mallory"}
    assert topic.order(canonical(forged), MALLORY) == "not_its_own"
    assert topic.world.tasks[task.task_id].state == "working"
    # The copies took neither the id of the wire nor its effect.
    assert topic.order(canonical(complete), ADA) is None
    assert topic.world.tasks[task.task_id].state == "completed"


def test_a_hint_that_is_too_large_does_not_spoil_a_stream() -> None:
    topic = _ordered()
    mallory = topic.world.slugs["mallory"]
    beat: Wire = next(dict(one) for one in shapes() if one["type"] == "agent.heartbeat")
    where = f"agent:{mallory}"
    beat |= {"sender": "agent:mallory", "payload": {"capacity": 1, "idem": "0" * 32, "body": "0" * 16}}
    beat["stream"] = {"stream_id": where, "stream_seq": LARGEST_SEQ, "context_id": beat["stream"]["context_id"]}
    following = topic.world.next_seq(where)
    assert topic.order(canonical(beat), MALLORY) is None
    assert topic.world.next_seq(where) == following + 1
    assert "0" * 32 not in topic.world.done


def test_nothing_counts_before_there_is_a_workspace() -> None:
    topic = Topic()
    for message, _ in honest()[1:6]:
        assert topic.order(message, STRANGER) == "no_workspace"
    assert topic.order(honest()[0][0], LOG) is None
    assert topic.world.workspace.operator == LOG


def test_every_type_is_either_for_agents_or_for_the_log() -> None:
    """Only the log may write a new event type, until the parties table allows it to others."""
    topic = _ordered()
    random = Random(1)
    taken = set()
    for _ in range(3000):
        wire = Aim(random, topic.world).wire("agent:mallory")
        if topic.order(canonical(wire), MALLORY) not in ("not_allowed", "sender_not_payer"):
            taken.add(wire["type"])
    assert taken <= set(catalogue())
    assert {"task.claim_attempted", "task.complete", "message.added", "inbox.sent", "agent.heartbeat"} <= taken
    # An agent may ask a queue for its next task; every other type of a queue is for the log.
    families = {name.partition(".")[0] for name in taken - {"queue.claim_requested"}}
    assert families <= {"task", "artifact", "message", "review", "inbox", "agent", "gate"}
    assert not taken & {"task.created", "task.claimed", "task.cancelled", "agent.registered", "agent.updated"}


def test_only_an_operator_adds_accounts() -> None:
    desk = Desk()
    with pytest.raises(Refused, match="Only an operator"):
        desk.do(AddParty(MALLORY))
    operator = Actor(desk.workspace_id, ADMIN_KEY, frozenset({"operator"}))
    desk.do(AddParty(MALLORY), operator)
    for command, code in ((AddParty(MALLORY), "party_exists"), (RemoveParty(ADA), "party_not_found")):
        with pytest.raises(Refused) as refused:
            desk.do(command, operator)
        assert refused.value.code == code
    with pytest.raises(Refused, match="no such agent"):
        desk.do(AddParty(ADA, "agt_nobody"), operator)
    desk.reload()
    assert list(desk.world.parties) == [MALLORY]
    desk.do(RemoveParty(MALLORY), operator)
    desk.reload()
    assert not desk.world.parties
