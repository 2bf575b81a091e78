"""Repeats: whatever was recorded under a key is told again from the ledger, word for word, and nothing is added."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redkey.commands.claims import (
    AddArtifact,
    BlockClaim,
    ClaimNext,
    ClaimTask,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    ReportUsage,
    StartClaim,
    Used,
)
from redkey.commands.decision import Refused
from redkey.commands.registry import (
    CreateKey,
    CreateQueue,
    CreateRole,
    DeactivateAgent,
    GrantRole,
    RegisterAgent,
    SendMessage,
    UpdateAgent,
    UpdateQueue,
)
from redkey.commands.tasks import AddMessage, CancelTask, CreateTask, RaiseConcern, RetryTask, UnblockTask
from redkey.readmodel import request_keys
from redkey.reducers import world as reducers_world
from redkey.reducers.world import IDEMPOTENCY_NANOSECONDS, SECOND
from redkey.services.outcome import Outcome
from redkey.stores.memory.unit import MemoryUnit
from redkey.wire.ids import event_id, ulid
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.invariants import check_topic
from tests.harness.office import two_offices

BODY = "b" * 16
A_DAY = IDEMPOTENCY_NANOSECONDS // SECOND


def told(outcome: Outcome) -> Any:
    """What a reply is made of; a completion that had to take up its hold again tells of itself alone."""
    records = [one for one in outcome.records if not one.wire["payload"].get("reacquired") or len(outcome.records) == 1]
    return records, outcome.answer, told(outcome.next) if outcome.next is not None else None


def scenario(desk: Desk) -> list[Any]:
    """Commands of every kind, each of which records something when it comes for the first time."""
    ids = desk.ids
    ada, bob = "agt_" + ids.ulid(), "agt_" + ids.ulid()
    tasks = ["task_" + ids.ulid() for _ in range(7)]
    return [
        RegisterAgent(ada, "ada", ref_of("a"), tuple(f"skill-{number}" for number in range(20))),
        RegisterAgent(bob, "bob", ref_of("b")),
        CreateRole("role_x"),
        GrantRole("role_x", ada),
        CreateQueue("queue_other", {}),
        UpdateQueue("queue_other", {"paused": True}),
        CreateKey("key_" + ids.ulid(), "rk_x", ("read",)),
        SendMessage("msg_" + ids.ulid(), "role:role_x", 1, "info", ref_of("x")),
        CreateTask(tasks[0], QUEUE, ref_of("x"), max_attempts=2),
        *(CreateTask(task, QUEUE, ref_of("x")) for task in tasks[1:]),
        CreateTask("task_" + ids.ulid(), QUEUE, ref_of("x"), waits_for=(tasks[0],)),
        lambda: ClaimTask(tasks[0], ada, 60),
        lambda: ClaimTask(tasks[0], bob, 60),
        lambda: StartClaim(_claim(desk, tasks[0])),
        lambda: PlanClaim(_claim(desk, tasks[0]), ref_of("plan")),
        lambda: ReportUsage(_claim(desk, tasks[0]), (Used("gpt-5", 0.25), Used("gpt-5-mini", 0.01))),
        lambda: AddArtifact(_claim(desk, tasks[0]), "art_" + ids.ulid(), "report", ref_of("r"), "ab" * 32, 3),
        lambda: AddMessage(tasks[0], "msg_" + ids.ulid(), "human", ref_of("hi")),
        lambda: RaiseConcern(tasks[0], "msg_" + ids.ulid(), "minor", ref_of("hm")),
        lambda: FailClaim(_claim(desk, tasks[0]), "error", ref_of("why")),
        lambda: ClaimNext(QUEUE, ada, 60, 3),
        lambda: BlockClaim(_claim(desk, tasks[1]), "auth", ref_of("why")),
        lambda: UnblockTask(tasks[1]),
        lambda: CompleteClaim(_claim(desk, tasks[2]), claim_next=ClaimNext(QUEUE, ada, 60)),
        lambda: ReleaseClaim(_claim(desk, tasks[3])),
        lambda: CancelTask(tasks[4]),
        lambda: RetryTask(tasks[4]),
        lambda: UpdateAgent(bob, slug="rob"),
        lambda: DeactivateAgent(bob),
    ]


def new_task(desk: Desk) -> CreateTask:
    """Another task each time: only its key tells that a request was done before."""
    return CreateTask("task_" + desk.ids.ulid(), QUEUE, ref_of("x"))


def _claim(desk: Desk, task_id: str) -> str:
    return desk.world.tasks[task_id].claim_id


@pytest.mark.parametrize("when", ["at once", "at the end", "after a restart", "when all of it is long past"])
def test_every_command_is_told_again_from_the_ledger(when: str) -> None:
    desk = Desk()
    first: list[tuple[Any, str, Any]] = []
    for number, made in enumerate(scenario(desk)):
        command = made() if callable(made) else made
        idem = f"{number:032x}"
        before = desk.world.sequence
        first.append((command, idem, told(desk.do(command, idem=idem, body=BODY))))
        assert desk.world.sequence > before, command
        if when == "at once":
            assert told(desk.do(command, idem=idem, body=BODY)) == first[-1][2]
    if when == "after a restart":
        desk.reload()
    if when == "when all of it is long past":
        desk.tick(A_DAY - 60)
    before = desk.world.sequence
    for command, idem, answer in first:
        again = desk.do(command, idem=idem, body=BODY)
        assert told(again) == answer, command
        assert again.repeated
    assert desk.world.sequence == before
    check_topic(desk.store, desk.topic)


def test_a_late_completion_is_told_again_without_the_hold_it_took_up() -> None:
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task()
    command = CompleteClaim(desk.hold(task, agent, 60))
    desk.tick(61)
    first = desk.do(command, idem="a" * 32, body=BODY)
    again = desk.do(command, idem="a" * 32, body=BODY)
    assert first.records[0].wire["payload"]["reacquired"]
    assert told(first) == told(again)


def test_a_late_heartbeat_is_told_again() -> None:
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task()
    command = HeartbeatClaim(desk.hold(task, agent, 60))
    desk.tick(61)
    first = desk.do(command, idem="a" * 32, body=BODY)
    assert told(first) == told(desk.do(command, idem="a" * 32, body=BODY))


def test_what_follows_from_time_does_not_come_between_a_request_and_its_consequences() -> None:
    """A lease ends in the very unit of a completion that asks for the next task: told again, both are whole."""
    desk = Desk()
    ada, bob = desk.agent("ada"), desk.agent("bob")
    other, task, following = desk.task(), desk.task(), desk.task()
    desk.hold(other, bob, 60)
    claim_id = desk.hold(task, ada, 600)
    command = CompleteClaim(claim_id, claim_next=ClaimNext(QUEUE, ada, 60))
    expires = desk.world.tasks[other].lease_expires_at
    # The unit begins a moment before the lease ends, and ends after it.
    desk.clock.advance((expires - desk.clock.wall() - 3) / SECOND)
    first = desk.do(command, idem="a" * 32, body=BODY)
    assert first.next is not None
    assert first.next.first("task.claimed") is not None
    assert told(first) == told(desk.do(command, idem="a" * 32, body=BODY))
    assert following in {one.wire["payload"].get("task_id") for one in first.next.records}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("why", ["a day has passed", "too many came after it"])
def test_a_key_that_has_left_the_window_is_refused(monkeypatch: pytest.MonkeyPatch, why: str, restart: bool) -> None:
    desk = Desk()
    first = desk.do(new_task(desk), idem="a" * 32, body=BODY).records[0]
    if why == "a day has passed":
        desk.clock.advance(A_DAY + 1)
    else:
        monkeypatch.setattr(reducers_world, "IDEMPOTENCY_LIMIT", 1)
        monkeypatch.setattr(request_keys, "IDEMPOTENCY_LIMIT", 1)
    desk.do(CreateRole("role_y"), idem="c" * 32, body=BODY)
    if restart:
        desk.reload()
    before = desk.world.sequence
    for body in (BODY, "c" * 16):
        with pytest.raises(Refused) as refused:
            desk.do(new_task(desk), idem="a" * 32, body=body)
        assert (refused.value.status, refused.value.code) == (410, "idempotency_key_expired")
        assert refused.value.members == {"eventId": event_id(first.event.wire_id)}
    assert desk.world.sequence == before
    assert desk.do(CreateRole("role_y"), idem="c" * 32, body=BODY).repeated
    # The index has half of the hash; another key that shares it is another key.
    assert desk.do(new_task(desk), idem="a" * 16 + "b" * 16, body=BODY).records


def test_a_key_is_looked_up_only_where_keys_have_left_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    events = MemoryUnit.events

    def counted(unit: MemoryUnit, topic: str, subject: str, *more: Any, **options: Any) -> Any:
        looked.append(subject)
        return events(unit, topic, subject, *more, **options)

    monkeypatch.setattr(MemoryUnit, "events", counted)
    desk = Desk()
    desk.do(new_task(desk), idem="a" * 32, body=BODY)
    desk.do(new_task(desk), idem="b" * 32, body=BODY)
    assert not looked
    desk.clock.advance(A_DAY + 1)
    desk.do(new_task(desk), idem="c" * 32, body=BODY)
    assert not looked
    desk.do(new_task(desk), idem="d" * 32, body=BODY)
    assert looked == ["idem:" + "d" * 16]


def test_what_was_not_recorded_is_asked_anew() -> None:
    desk = Desk()
    agent = desk.agent("ada")
    command = ClaimNext(QUEUE, agent, 60)
    assert desk.do(command, idem="a" * 32, body=BODY).answer == {"status": "no_tasks"}
    desk.task()
    assert desk.do(command, idem="a" * 32, body=BODY).first("task.claimed") is not None


def test_keys_of_one_workspace_mean_nothing_in_another() -> None:
    async def whole() -> None:
        one, other = two_offices()
        await one.begin()
        await other.begin("wk_" + ulid(5, bytes(10)))
        key = {"idem": "a" * 32, "body": BODY}
        assert (await one.do(CreateRole("role_x"), **key)).records
        assert not (await other.do(CreateRole("role_x"), **key)).repeated

    asyncio.run(whole())
