"""Readers of one topic: whatever is on it, and however they read it, they compute the same records and world."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redkey.commands.actor import Actor
from redkey.commands.claims import (
    ClaimNext,
    ClaimTask,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    ReleaseClaim,
    ReportProgress,
    StartClaim,
)
from redkey.commands.decision import Refused
from redkey.commands.draft import seal
from redkey.commands.due import due, next_time
from redkey.commands.policies import AddParty, RaiseRules, RetireTopic
from redkey.commands.registry import CreateQueue, HeartbeatAgent
from redkey.commands.tasks import CancelTask, CreateTask
from redkey.errors import LedgerError
from redkey.ledger import content
from redkey.ledger.network import projected_topic
from redkey.ledger.record import Record
from redkey.plans.model import read_plan
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.readmodel.world_loading import load_world
from redkey.reducers.world import SECOND
from redkey.services.ordered.messages import left_out, message_at, message_of
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.services.submission import Submission
from redkey.wire.canonical import canonical
from redkey.wire.events import TaskClaimed
from redkey.wire.validate import encode
from tests.harness.desk import QUEUE, ref_of
from tests.harness.ordered import NETWORK, OPERATOR, PARTNER, STRANGER, TOPIC, ListTopic, OrderedDesk
from tests.harness.runs import plan_of, step
from tests.harness.snapshot import snapshot

EXAMPLES = 200 if os.environ.get("REDKEY_TEST_LONG") == "1" else 8
MALLORY = "0.0.300"


def two_servers() -> tuple[ListTopic, OrderedDesk, OrderedDesk]:
    """A workspace, the server of its operator, and that of another organisation."""
    topic = ListTopic()
    ours = OrderedDesk(topic, begin=True)
    ours.do(AddParty(PARTNER), ours.operator)
    return topic, ours, another(ours, PARTNER, 1)


def another(desk: OrderedDesk, payer: str, lane: int) -> OrderedDesk:
    """Another server on the same topic, which has read nothing yet."""
    other = OrderedDesk(desk.network, payer, lane=lane)
    other.workspace_id, other.admin, other.operator = desk.workspace_id, desk.admin, desk.operator
    other.read()
    return other


def reread(topic: ListTopic, batch: int) -> OrderedDesk:
    """A stranger that reads the whole topic, so many messages at a time."""
    reader = OrderedDesk(topic, STRANGER, lane=9)
    for _ in range(0, len(topic.messages), batch):
        reader.read(batch)
    return reader


def assert_same(*desks: OrderedDesk) -> None:
    """The same records, rows and worlds; and the ones that a replay of the local topic alone gives."""
    first = desks[0]
    for desk in desks:
        assert desk.ledger() == first.ledger()
        assert rows_digest(desk.store, desk.topic) == replay_digest(first.store, first.topic)
        assert snapshot(load_world(desk.store, desk.topic)) == snapshot(load_world(first.store, first.topic))


class Crowd:
    """Two servers, a stranger and an agent that means harm act by chance on what they have read."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.topic, *self.servers = two_servers()
        ours = self.servers[0]
        self.agents = [ours.agent(f"agent-{number}", "role_writer") for number in range(4)]
        ours.do(AddParty(MALLORY, self.agents[0]), ours.operator)
        self.open: list[tuple[OrderedDesk, Submission]] = []

    def act(self) -> None:
        random, desk = self.random, self.random.choice(self.servers)
        kind = random.randrange(12)
        if kind < 2:
            self._ask(desk, CreateTask("task_" + desk.ids.ulid(), QUEUE, ref_of("x"), **self._extras()))
        elif kind < 5:
            self._ask(desk, self._claim(desk))
        elif kind < 8:
            self._ask(desk, self._hold(desk))
        elif kind == 8:
            desk.read(random.randrange(1, 6))
        elif kind == 9:
            self.topic.clock.advance(random.choice([0, 1, 20, 200]))
        else:
            self._attack()

    def _extras(self) -> dict[str, Any]:
        return self.random.choice([{}, {"max_attempts": 2}, {"deadline_seconds": 30}, {"roles": ("role_writer",)}])

    def _claim(self, desk: OrderedDesk) -> Any:
        agent, lease = self.random.choice(self.agents), self.random.choice([0, 5, 60])
        tasks = [*desk.world.tasks]
        if tasks and self.random.random() < 0.4:
            return ClaimTask(self.random.choice(tasks), agent, lease)
        return ClaimNext(QUEUE, agent, lease, self.random.choice([1, 1, 3]))

    def _hold(self, desk: OrderedDesk) -> Any:
        claims = [*desk.world.claims, *desk.world.expired]
        if not claims:
            return self._claim(desk)
        claim = self.random.choice(claims)
        more = ClaimNext(QUEUE, self.random.choice(self.agents)) if self.random.random() < 0.3 else None
        return self.random.choice(
            [
                StartClaim(claim),
                HeartbeatClaim(claim),
                ReleaseClaim(claim),
                FailClaim(claim, "error"),
                CompleteClaim(claim, claim_next=more),
                CancelTask(self.random.choice([*desk.world.tasks])),
            ]
        )

    def _ask(self, desk: OrderedDesk, command: Any) -> None:
        try:
            asked = desk.ask(command)
        except Refused:
            return
        if isinstance(asked, Submission):
            self.open.append((desk, asked))

    def _attack(self) -> None:
        """Bytes, copies, and wires of the log under another payer; the last a tick, which anybody may send."""
        random, messages = self.random, self.topic.messages
        payer = random.choice([STRANGER, MALLORY, PARTNER])
        data = random.choice([random.randbytes(random.randrange(1, 60)), random.choice(messages).wire])
        world = self.servers[0].world
        if next_time(world) and random.random() < 0.5:
            drafts = due(world, next_time(world))
            if drafts:
                data = encode(seal(world, drafts[0], world.timestamp, self.servers[0].ids))[0]
        self.topic.order(data, payer)

    def end(self) -> None:
        """Everybody reads to the end, and every request has an answer."""
        for desk in self.servers:
            desk.read()
        for desk, submission in self.open:
            with suppress(Refused):
                desk.answer(submission)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_readers_of_the_same_messages_compute_the_same_bytes(seed: int) -> None:
    crowd = Crowd(Random(seed))
    for _ in range(60):
        crowd.act()
    crowd.end()
    assert_same(*crowd.servers, reread(crowd.topic, 1), reread(crowd.topic, 7), reread(crowd.topic, 10_000))


def test_one_of_two_servers_wins_a_task_and_both_know_it() -> None:
    _, ours, theirs = two_servers()
    ada, bob, task = ours.agent("ada"), ours.agent("bob"), ours.task()
    theirs.read()
    asked = [ours.ask(ClaimTask(task, ada)), theirs.ask(ClaimTask(task, bob))]
    for desk in (ours, theirs):
        desk.read()
    first, second = ours.answer(asked[0]), theirs.answer(asked[1])
    assert [one.event.type for one in first.records] == ["task.claim_attempted", "task.claimed"]
    assert [one.event.type for one in second.records] == ["task.claim_attempted", "task.claim_missed"]
    assert_same(ours, theirs)


def test_requests_for_the_next_task_are_judged_at_their_places() -> None:
    _, ours, theirs = two_servers()
    agents = [ours.agent(f"agent-{number}") for number in range(4)]
    tasks = [ours.task() for _ in range(3)]
    theirs.read()
    asked = [(desk, desk.ask(ClaimNext(QUEUE, agent))) for desk, agent in zip([ours, theirs] * 2, agents, strict=True)]
    for desk in (ours, theirs):
        desk.read()
    won = [desk.answer(submission) for desk, submission in asked]
    claimed = [one.event.payload for outcome in won for one in outcome.records if one.event.type == "task.claimed"]
    # Nobody attempted the same task: as many messages as agents, and three winners.
    assert [ours.world.tasks[task].agent_id for task in tasks] == agents[:3]
    assert len(claimed) == 3
    assert all(isinstance(one, TaskClaimed) for one in claimed)
    assert won[3].answer == {"status": "no_tasks"}
    assert_same(ours, theirs)


def test_a_claim_may_ask_for_several_and_for_a_lease() -> None:
    _, ours, _ = two_servers()
    agent, tasks = ours.agent("ada"), [ours.task() for _ in range(3)]
    outcome = ours.do(ClaimNext(QUEUE, agent, 30, 2))
    assert [one.event.type for one in outcome.records].count("task.claimed") == 2
    assert [ours.state(task) for task in tasks] == ["claimed", "claimed", "available"]
    assert ours.world.tasks[tasks[0]].lease_seconds_held == 30


def test_a_completion_claims_the_next_task_after_its_own_hold_has_ended() -> None:
    _, ours, _ = two_servers()
    ours.do(CreateQueue("queue_single", {"max_live_claims": 1}))
    agent, tasks = ours.agent("ada"), [ours.task("queue_single") for _ in range(2)]
    claim = ours.hold(tasks[0], agent)
    outcome = ours.do(CompleteClaim(claim, claim_next=ClaimNext("queue_single", agent)))
    assert outcome.records[0].event.type == "task.complete"
    assert outcome.next is not None
    assert outcome.next.records[-1].event.type == "task.claimed"
    assert ours.state(tasks[1]) == "claimed"


def test_signs_of_life_and_progress_are_messages_as_seldom_as_the_lease_allows() -> None:
    topic, ours, _ = two_servers()
    agent, task = ours.agent("ada"), ours.task()
    claim, sent = ours.hold(task, agent, 60), len(topic.messages)
    for second in range(50):
        ours.do(HeartbeatClaim(claim))
        ours.do(ReportProgress(claim, second))
        ours.do(HeartbeatAgent(agent))
        topic.clock.advance(1)
    kinds = [one.event.type for one in ours.records() if one.event.type in ("task.lease_extended", "task.progress")]
    assert sorted(kinds) == ["task.lease_extended", "task.progress", "task.progress"]
    assert len(topic.messages) == sent + 3


def test_what_is_due_is_recorded_at_its_own_moment_whatever_shows_that_time_has_passed() -> None:
    topic, ours, theirs = two_servers()
    agent, task = ours.agent("ada"), ours.task()
    ours.hold(task, agent, 10)
    ends = ours.world.tasks[task].lease_expires_at
    topic.clock.advance(3600)
    topic.order(b"anything", STRANGER)
    ours.read(), theirs.read()
    expired = next(one for one in ours.records() if one.event.type == "task.lease_expired")
    assert expired.timestamp == ends
    assert ours.state(task) == "available"
    assert_same(ours, theirs)


def test_a_tick_leaves_no_record_of_its_own_and_so_do_its_repeats() -> None:
    topic, ours, theirs = two_servers()
    ours.hold(ours.task(), ours.agent("ada"), 10)
    topic.clock.advance(11)
    (draft,) = due(ours.world, next_time(ours.world))
    tick, before = encode(seal(ours.world, draft, ours.world.timestamp, ours.ids))[0], ours.world.sequence
    places = [topic.order(tick, payer) for payer in (OPERATOR, PARTNER)]
    ours.read(), theirs.read()
    assert ours.types(before).count("task.lease_expired") == 1
    found = [message_at(ours.store, ours.topic, place) for place in places]
    assert [one.void for one in found if one is not None] == ["not_a_request", "not_a_request"]
    assert_same(ours, theirs)


def test_a_message_that_was_submitted_twice_counts_once() -> None:
    topic, ours, theirs = two_servers()
    task = ours.ask(CreateTask("task_" + ours.ids.ulid(), QUEUE, ref_of("x")))
    copy = topic.order(topic.messages[task.sent[0] - 1].wire, PARTNER)
    ours.read(), theirs.read()
    assert ours.types().count("task.created") == 1
    found = message_at(ours.store, ours.topic, copy)
    assert found is not None
    assert (found.void, found.recorded_at) == ("duplicate_wire", 0)
    assert_same(ours, theirs)


def test_a_stranger_with_the_submit_key_changes_nothing() -> None:
    topic, ours, theirs = two_servers()
    agent, task = ours.agent("ada"), ours.task()
    claim = ours.hold(task, agent)
    evil = another(ours, STRANGER, 5)
    before = ours.ledger()
    for command in (CompleteClaim(claim), ReleaseClaim(claim), CancelTask(task)):
        evil.ask(command)
    evil.ask(AddParty(STRANGER), evil.operator)
    wire = ours.records()[0].wire
    raised = {**wire, "type": "workspace.rules_raised", "payload": {"rules": 99}, "wire_id": "wire_" + evil.ids.ulid()}
    topic.order(canonical(raised), STRANGER)
    ours.read(), theirs.read(), evil.read()
    assert ours.ledger() == before
    assert ours.state(task) == "claimed"
    assert [one.void for one in left_out(ours.store, ours.topic)] == ["unknown_payer"] * 5
    assert_same(ours, theirs, evil)


def test_an_agents_own_account_acts_for_that_agent_alone() -> None:
    _topic, ours, _ = two_servers()
    mallory, ada, task, other = ours.agent("mallory"), ours.agent("ada"), ours.task(), ours.task()
    ours.do(AddParty(MALLORY, mallory), ours.operator)
    held = ours.hold(task, ada)
    evil = another(ours, MALLORY, 5)
    evil.ask(CompleteClaim(held), Actor(ours.workspace_id, "key_x", frozenset({"agent"}), ada))
    won = evil.ask(ClaimTask(other, mallory), ours.key_of(mallory))
    ours.read(), evil.read()
    assert ours.state(task) == "claimed"
    assert evil.answer(won).records[-1].event.type == "task.claimed"
    assert [one.void for one in left_out(ours.store, ours.topic)] == ["sender_not_payer"]


def test_a_holder_that_comes_too_late_is_told_so() -> None:
    topic, ours, theirs = two_servers()
    ada, bob, task = ours.agent("ada"), ours.agent("bob"), ours.task()
    claim = ours.hold(task, ada, 5)
    theirs.read()
    topic.clock.advance(6)
    took = theirs.ask(ClaimTask(task, bob, 60))
    late = ours.ask(CompleteClaim(claim))
    ours.read(), theirs.read()
    assert theirs.answer(took).records[-1].event.type == "task.claimed"
    with pytest.raises(Refused) as refused:
        ours.answer(late)
    assert refused.value.code == "lease_lost"
    assert_same(ours, theirs)


def test_a_request_that_comes_to_both_servers_under_one_key_is_done_once() -> None:
    _, ours, theirs = two_servers()
    commands = [CreateTask("task_" + desk.ids.ulid(), QUEUE, ref_of("x")) for desk in (ours, theirs)]
    asked = [
        desk.ask(command, idem="a" * 32, body="b" * 16) for desk, command in zip((ours, theirs), commands, strict=True)
    ]
    ours.read(), theirs.read()
    outcomes = [desk.answer(one) for desk, one in zip((ours, theirs), asked, strict=True)]
    assert ours.types().count("task.created") == 1
    assert outcomes[0].event_id == outcomes[1].event_id
    again = theirs.do(commands[1], idem="a" * 32, body="b" * 16)
    assert again.repeated
    assert again.event_id == outcomes[0].event_id


def test_the_projection_waits_for_structure_and_says_for_which() -> None:
    _topic, ours, theirs = two_servers()
    plan = plan_of(step("draft"), step("text", "draft"))
    prepared = prepare(plan, ours.ids.nonce)
    roles, documents = missing_roles(read_plan(plan), ours.world.roles, ours.ids.nonce)
    for role in roles:
        ours.do(role)
    run = start_command(prepared, "wf_" + ours.ids.ulid(), QUEUE, ())
    ours.do(run, contents=(*prepared.contents, *documents))
    after = ours.task()
    missing = theirs.read()
    assert missing == prepared.contents[0].sha256
    assert after not in theirs.world.tasks
    # It comes from another server, as a body like any other; what is on the topic says that it is structure.
    with theirs.store.write(theirs.topic) as unit:
        unit.put_content(theirs.topic, [content.body(prepared.contents[0].data)])
    assert theirs.read() is None
    assert after in theirs.world.tasks
    assert theirs.store.content_facts(theirs.topic, missing).pinned  # type: ignore[union-attr]
    assert_same(ours, theirs)


def test_nothing_counts_after_the_topic_is_retired() -> None:
    _, ours, theirs = two_servers()
    ours.do(RetireTopic(TOPIC, NETWORK), ours.operator)
    sent = theirs.ask(CreateTask("task_" + theirs.ids.ulid(), QUEUE, ref_of("x")))
    ours.read(), theirs.read()
    found = message_at(ours.store, ours.topic, sent.sent[0])
    assert found is not None
    assert found.void == "topic_retired"
    assert_same(ours, theirs)


def test_rules_are_raised_by_the_operator_alone() -> None:
    _, ours, _ = two_servers()
    with pytest.raises(Refused, match="already has rules 2"):
        ours.do(RaiseRules(2), ours.operator)


@pytest.mark.parametrize("wrong", ["skipped", "repeated", "changed", "earlier"])
def test_messages_that_do_not_follow_are_noticed_and_named(wrong: str) -> None:
    topic, ours, _ = two_servers()
    for _ in range(3):
        topic.order(b"anything", STRANGER)
    first, second = topic.messages[-3], topic.messages[-2]
    code = {"skipped": "network_gap", "repeated": "network_gap", "earlier": "running_hash_wrong"}.get(wrong, "")
    if wrong == "skipped":
        topic.messages[-3:] = [second, topic.messages[-1]]
    elif wrong == "repeated":
        topic.messages[-2:] = [first, second]
    else:
        data, time = (b"anythinG", first.timestamp) if wrong == "changed" else (first.wire, first.timestamp - SECOND)
        topic.messages[-3] = Record(TOPIC, first.sequence, time, first.payer, first.running_hash, data)
    with pytest.raises(LedgerError) as refused:
        ours.read()
    assert refused.value.code == (code or "running_hash_wrong")


def test_each_record_of_a_message_is_found_by_its_place_and_the_other_way_round() -> None:
    _, ours, _ = two_servers()
    ours.task()
    created = next(one for one in ours.records() if one.event.type == "task.created")
    found = message_of(ours.store, ours.topic, created.sequence)
    assert found is not None
    assert message_at(ours.store, ours.topic, found.sequence) == found
    assert found.wire_id == created.event.wire_id
    assert message_of(ours.store, ours.topic, created.sequence + 1) is None


def test_local_topics_of_networks_have_ids_of_their_own() -> None:
    assert projected_topic("mainnet", "0.0.5") == "2.0.5"
    assert len({projected_topic(one, "0.0.5") for one in ("mainnet", "testnet", "previewnet", "mine")}) == 4
    with pytest.raises(ValueError, match="shard 0"):
        projected_topic("mainnet", "1.0.5")
