"""Tasks as their owners see them: dependencies, retries, deadlines, cancelling, unblocking, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from redkey.commands.claims import BlockClaim, CompleteClaim, FailClaim, ReleaseClaim, StartClaim
from redkey.commands.decision import Refused
from redkey.commands.registry import CreateQueue, GrantCredits, PriceCredits, UpdateQueue
from redkey.commands.tasks import AddMessage, CancelTask, CreateTask, RaiseConcern, RetryTask, UnblockTask
from redkey.ledger import content
from redkey.reducers.world import SECOND
from redkey.wire.ids import ulid
from tests.harness.desk import QUEUE, Desk, ref_of

LONG_AGO = 3600
MESSAGE = "msg_" + ulid(1, bytes(10))


def code(desk: Desk, command: Any, contents: Any = ()) -> tuple[int, str]:
    before = desk.world.sequence
    with pytest.raises(Refused) as refused:
        desk.do(command, contents=contents)
    assert desk.world.sequence == before, "a refusal records nothing"
    return refused.value.status, refused.value.code


def test_a_task_is_created_and_offered_in_one_unit(desk: Desk) -> None:
    before = desk.world.sequence
    task = desk.task()
    created, available = desk.records(before)
    assert (created.wire["type"], available.wire["type"]) == ("task.created", "task.available")
    assert available.wire["stream"]["causation_id"] == created.wire["wire_id"]
    assert available.wire["sender"] == "system"
    assert desk.state(task) == "available"


def test_what_a_task_asks_for_must_be_there(desk: Desk) -> None:
    task_id, ref = "task_" + desk.ids.ulid(), ref_of("x")
    assert code(desk, CreateTask(task_id, "queue_none", ref)) == (404, "queue_not_found")
    assert code(desk, CreateTask(task_id, QUEUE, ref, roles=("role_none",))) == (422, "unknown_role")
    unknown = CreateTask(task_id, QUEUE, ref, waits_for=("task_" + "0" * 26,))
    assert code(desk, unknown) == (422, "unknown_dependency")


def test_what_does_not_fit_a_wire_is_refused_with_its_place(desk: Desk) -> None:
    for slug in ("a", "b", "c", "d", "e"):
        desk.agent(slug, f"role_{slug}")
    command = CreateTask("task_" + desk.ids.ulid(), QUEUE, ref_of("x"), roles=tuple(f"role_{s}" for s in "abcde"))
    assert code(desk, command)[0] == 422


# Dependencies.


def test_a_task_stays_created_until_all_it_waits_for_is_complete(desk: Desk) -> None:
    agent, first, second = desk.agent("ada"), desk.task(), desk.task()
    task = desk.task(waits_for=(first, second))
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "created"
    before = desk.world.sequence
    done = desk.complete(desk.hold(second, agent)).records[0]
    assert desk.state(task) == "available"
    assert desk.types(before)[-2:] == ["task.complete", "task.available"]
    assert desk.records(before)[-1].wire["stream"]["causation_id"] == done.wire["wire_id"]


def test_dependencies_are_found_again_after_a_restart(desk: Desk) -> None:
    agent, first = desk.agent("ada"), desk.task()
    task = desk.task(waits_for=(first,))
    desk.reload()
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "available"


def test_what_is_complete_already_is_not_waited_for(desk: Desk) -> None:
    agent, done, long_done = desk.agent("ada"), desk.task(), desk.task()
    desk.complete(desk.hold(long_done, agent))
    desk.tick(LONG_AGO)
    desk.complete(desk.hold(done, agent))
    assert long_done not in desk.world.tasks
    assert desk.state(desk.task(waits_for=(done, long_done))) == "available"


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_task_fails_with_what_it_waits_for_and_so_on_down(desk: Desk, end: str) -> None:
    agent, first = desk.agent("ada"), desk.task()
    second = desk.task(waits_for=(first,))
    third = desk.task(waits_for=(second,))
    claim_id = desk.hold(first, agent)
    desk.do(FailClaim(claim_id, "error") if end == "failed" else CancelTask(first))
    assert [desk.state(task) for task in (first, second, third)] == [end, "failed", "failed"]
    assert {desk.world.tasks[task].failure_kind for task in (second, third)} == {"dependency_failed"}


def test_a_task_that_waits_for_a_failure_fails_at_once(desk: Desk) -> None:
    first = desk.task()
    desk.do(CancelTask(first))
    task = desk.task(waits_for=(first,))
    assert (desk.state(task), desk.world.tasks[task].failure_kind) == ("failed", "dependency_failed")


def test_a_task_goes_on_waiting_while_what_it_waits_for_is_tried_again(desk: Desk) -> None:
    agent, first = desk.agent("ada"), desk.task(max_attempts=2)
    task = desk.task(waits_for=(first,))
    desk.do(FailClaim(desk.hold(first, agent), "error"))
    assert desk.state(task) == "created"
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "available"


def structured(desk: Desk, **structure: Any) -> str:
    """Create a task whose requirements are in a pinned structure."""
    made = content.structure(structure)
    task_id = "task_" + desk.ids.ulid()
    named = {key: tuple(value) for key, value in structure.items() if key in ("roles", "waits_for")}
    command = CreateTask(
        task_id,
        QUEUE,
        ref_of(task_id),
        structure=structure,
        structure_ref=content.ref(made),
        **named,  # type: ignore[arg-type]
    )
    desk.do(command, contents=(made,))
    return task_id


def test_a_failure_under_block_makes_dependents_wait_and_notifies_the_humans(desk: Desk) -> None:
    agent, first = desk.agent("ada"), structured(desk, on_failure="block", max_attempts=1)
    task = desk.task(waits_for=(first,))
    desk.do(FailClaim(desk.hold(first, agent), "error", ref_of("why")))
    assert (desk.state(first), desk.state(task)) == ("failed", "created")
    assert [(mail.to, mail.ref_task_id) for mail in desk.world.messages.values()] == [("human", first)]
    late = desk.task(waits_for=(first,))
    assert desk.state(late) == "created", "who comes later waits too"
    desk.reload()
    desk.do(RetryTask(first))
    desk.complete(desk.hold(first, agent))
    assert (desk.state(task), desk.state(late)) == ("available", "available")


def test_structure_carries_what_a_wire_has_no_room_for(desk: Desk) -> None:
    desk.agent("ada", "role_a")
    first = desk.task()
    demands = {"roles": ["role_a"], "capabilities": ["x"], "outputs": ["one", "two", "three"], "waits_for": [first]}
    task_id = structured(desk, **demands, lease_seconds=70, deadline_seconds=500, max_attempts=3)
    task = desk.world.tasks[task_id]
    assert (task.roles, task.capabilities, task.outputs) == (("role_a",), ("x",), ("one", "two", "three"))
    assert (task.waits_for, task.lease_seconds, task.max_attempts) == ((first,), 70, 3)
    assert task.deadline_at == task.created_at + 500 * SECOND


def test_a_retry_of_a_structured_task_asks_for_the_same_again(desk: Desk) -> None:
    agent, task = desk.agent("ada"), structured(desk, outputs=["one"], max_attempts=2)
    desk.do(FailClaim(desk.hold(task, agent), "error"))
    assert (desk.world.tasks[task].attempt, desk.world.tasks[task].outputs) == (2, ("one",))


# Failures and retries.


def test_a_failed_attempt_is_followed_by_another_while_there_are_some_left(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task(max_attempts=2, priority="high", context_id="project:x")
    before = desk.world.sequence
    failed = desk.do(FailClaim(desk.hold(task, agent), "error", ref_of("why"))).records[0]
    assert failed.wire["payload"]["retry"] is True
    assert desk.types(before)[-3:] == ["task.failed", "task.created", "task.available"]
    again = desk.records(before)[-2].wire
    assert again["stream"]["stream_id"] == f"task:{task}:attempt:2"
    assert again["stream"]["context_id"] == "project:x"
    assert again["stream"]["causation_id"] == failed.wire["wire_id"]
    assert (again["payload"]["retry_of"], again["payload"]["priority"]) == (1, "high")
    last = desk.do(FailClaim(desk.hold(task, agent), "error")).records[0]
    assert last.wire["payload"]["retry"] is False
    assert (desk.state(task), desk.world.tasks[task].attempt) == ("failed", 2)


def test_a_rejected_task_is_not_tried_again(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task(max_attempts=5)
    desk.do(FailClaim(desk.hold(task, agent), "rejected"))
    assert (desk.state(task), desk.world.tasks[task].attempt) == ("failed", 1)


def test_the_queue_says_how_often_a_task_is_tried_when_the_task_does_not(desk: Desk) -> None:
    desk.do(CreateQueue("queue_hard", {"max_attempts": 2}))
    agent, task = desk.agent("ada"), desk.task("queue_hard")
    desk.do(FailClaim(desk.hold(task, agent), "error"))
    assert desk.world.tasks[task].attempt == 2


def test_a_policy_to_fail_gives_no_second_attempt(desk: Desk) -> None:
    agent, task = desk.agent("ada"), structured(desk, on_failure="fail", max_attempts=3)
    desk.do(FailClaim(desk.hold(task, agent), "error"))
    assert desk.state(task) == "failed"


@pytest.mark.parametrize("wait", [0, LONG_AGO])
@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_an_owner_reopens_a_task_also_when_it_has_left_the_world(desk: Desk, end: str, wait: int) -> None:
    agent, task = desk.agent("ada"), desk.task(reference_task_ids=("task_" + "1" * 26,))
    claim_id = desk.hold(task, agent)
    desk.do(FailClaim(claim_id, "error") if end == "failed" else CancelTask(task))
    desk.tick(wait)
    desk.agent("bob")
    desk.do(RetryTask(task))
    reopened = desk.world.tasks[task]
    assert (reopened.state, reopened.attempt) == ("available", 2)
    assert reopened.reference_task_ids == ("task_" + "1" * 26,)
    desk.complete(desk.hold(task, agent))


def test_only_what_failed_is_tried_again(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    assert code(desk, RetryTask(task)) == (409, "not_failed")
    desk.complete(desk.hold(task, agent))
    assert code(desk, RetryTask(task)) == (409, "not_failed")
    assert code(desk, RetryTask("task_" + "0" * 26)) == (404, "task_not_found")


@pytest.mark.parametrize("wait", [0, LONG_AGO])
def test_a_task_is_not_tried_again_before_what_it_waits_for(desk: Desk, wait: int) -> None:
    agent, first = desk.agent("ada"), desk.task()
    task = desk.task(waits_for=(first,))
    desk.do(CancelTask(first))
    desk.tick(wait)
    desk.task()
    assert code(desk, RetryTask(task)) == (409, "dependency_failed")
    desk.do(RetryTask(first))
    desk.do(RetryTask(task))
    assert desk.state(task) == "created", "it waits again"
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "available"


# Time.


def test_lost_leases_are_counted_apart_and_end_a_task_at_their_bound(desk: Desk) -> None:
    desk.do(UpdateQueue(QUEUE, {"lease_losses": 3}))
    agent, task = desk.agent("ada"), desk.task()
    for losses in (1, 2):
        desk.hold(task, agent, 5)
        desk.tick(6)
        found = desk.world.tasks[task]
        assert (found.state, found.lease_losses, found.attempt) == ("available", losses, 1)
    desk.hold(task, agent, 5)
    before = desk.world.sequence
    desk.tick(6)
    assert desk.types(before) == ["task.lease_expired", "task.failed"]
    assert (desk.state(task), desk.world.tasks[task].failure_kind) == ("failed", "lease_losses")


def test_a_claim_over_the_last_lost_lease_comes_too_late(desk: Desk) -> None:
    desk.do(UpdateQueue(QUEUE, {"lease_losses": 1}))
    ada, bob, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    desk.hold(task, ada, 5)
    desk.clock.advance(6)
    wire = desk.claim(task, bob).wire
    assert (wire["type"], wire["payload"]["detail"]) == ("task.claim_rejected", "failed")


def test_lost_leases_at_their_bound_use_up_an_attempt(desk: Desk) -> None:
    desk.do(UpdateQueue(QUEUE, {"lease_losses": 1}))
    agent, task = desk.agent("ada"), desk.task(max_attempts=2)
    desk.hold(task, agent, 5)
    desk.tick(6)
    found = desk.world.tasks[task]
    assert (found.state, found.attempt, found.lease_losses) == ("available", 2, 0)


@pytest.mark.parametrize("state", ["created", "available", "claimed", "working", "blocked"])
def test_a_deadline_ends_a_task_in_every_state(desk: Desk, state: str) -> None:
    agent, upstream = desk.agent("ada"), desk.task()
    task = desk.task(deadline_seconds=100, max_attempts=3, waits_for=(upstream,) if state == "created" else ())
    bring(desk, task, agent, state)
    desk.tick(99)
    assert desk.state(task) == state
    desk.tick(1.1)
    found = desk.world.tasks[task]
    assert (found.state, found.failure_kind, found.attempt) == ("failed", "deadline", 1)


def bring(desk: Desk, task: str, agent: str, state: str) -> str:
    """Bring an available task into a state; return its claim, if any."""
    if state in ("created", "available"):
        return ""
    claim_id = desk.hold(task, agent)
    if state == "working":
        desk.do(StartClaim(claim_id))
    elif state == "blocked":
        desk.do(BlockClaim(claim_id, "auth", ref_of("why")))
    elif state == "completed":
        desk.complete(claim_id)
    elif state == "failed":
        desk.do(FailClaim(claim_id, "error"))
    elif state == "cancelled":
        desk.do(CancelTask(task))
    return claim_id


def test_a_deadline_begins_again_with_a_retry(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task(deadline_seconds=100)
    desk.clock.advance(90)
    desk.do(FailClaim(desk.hold(task, agent), "error"))
    desk.do(RetryTask(task))
    desk.tick(90)
    assert desk.state(task) == "available"
    desk.tick(11)
    assert desk.state(task) == "failed"


def test_each_timer_fires_once(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task(deadline_seconds=1000)
    desk.hold(task, agent, 60)
    assert [one.wire["type"] for one in desk.tick(61)] == ["task.lease_expired"]
    assert desk.tick(1) == []
    desk.reload()
    assert desk.tick(1) == []


# Cancelling, unblocking, talk.


@pytest.mark.parametrize("state", ["created", "available", "claimed", "working", "blocked"])
def test_a_task_is_cancelled_in_every_state_that_is_not_an_end(desk: Desk, state: str) -> None:
    agent, upstream = desk.agent("ada"), desk.task()
    task = desk.task(waits_for=(upstream,) if state == "created" else ())
    claim_id = bring(desk, task, agent, state)
    desk.do(CancelTask(task))
    assert (desk.state(task), desk.world.tasks[task].cause) == ("cancelled", "requested")
    if state in ("claimed", "working"):
        assert code(desk, CompleteClaim(claim_id)) == (409, "already_terminal")


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_an_ended_task_refuses_its_owner_too(desk: Desk, state: str) -> None:
    agent, task = desk.agent("ada"), desk.task()
    bring(desk, task, agent, state)
    for wait in (0, LONG_AGO):
        desk.tick(wait)
        desk.task()
        for command in (
            CancelTask(task),
            UnblockTask(task),
            AddMessage(task, MESSAGE, "human", ref_of("hello")),
            RaiseConcern(task, MESSAGE, "major", ref_of("hm")),
        ):
            assert code(desk, command) == (409, "already_terminal")


def test_an_answer_opens_a_blocked_task_again(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    assert code(desk, UnblockTask(task)) == (409, "not_blocked")
    bring(desk, task, agent, "blocked")
    desk.do(UnblockTask(task, ref_of("here")))
    assert (desk.state(task), desk.world.tasks[task].blocker_type) == ("available", "")
    desk.hold(task, agent)


@pytest.mark.parametrize(
    "talk",
    [
        lambda task: AddMessage(task, MESSAGE, "human", ref_of("hello")),
        lambda task: RaiseConcern(task, MESSAGE, "major", ref_of("hm")),
    ],
)
def test_talk_about_a_task_moves_nothing(desk: Desk, talk: Callable[[str], Any]) -> None:
    agent, task = desk.agent("ada"), desk.task()
    desk.hold(task, agent)
    desk.do(talk(task))
    assert desk.state(task) == "claimed"


def test_a_concern_is_about_work_in_progress(desk: Desk) -> None:
    assert code(desk, RaiseConcern(desk.task(), MESSAGE, "major", ref_of("hm"))) == (409, "not_held")


# Credits.


def test_an_exhausted_workspace_gets_no_new_work_but_what_runs_may_finish(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    failed = desk.task()
    desk.do(FailClaim(desk.hold(failed, agent), "error"))
    used = desk.world.workspace.credits_used
    desk.do(GrantCredits(used + 2))
    claim_id = desk.hold(task, agent)
    assert code(desk, CreateTask("task_" + desk.ids.ulid(), QUEUE, ref_of("x"))) == (402, "credits_exhausted")
    assert code(desk, RetryTask(failed)) == (402, "credits_exhausted")
    desk.do(StartClaim(claim_id))
    desk.complete(claim_id)
    desk.do(GrantCredits(10))
    desk.task()


def test_prices_are_on_the_ledger_and_requests_are_charged_by_them(desk: Desk) -> None:
    agent = desk.agent("ada")
    prices = content.structure({"task.created": 5, "task.claim_attempted": 0})
    desk.do(PriceCredits(2, content.ref(prices)), contents=(prices,))
    before = desk.world.workspace.credits_used
    task = desk.task()
    assert desk.world.workspace.credits_used == before + 5, "task.available follows and costs nothing"
    claim_id = desk.hold(task, agent)
    assert desk.world.workspace.credits_used == before + 5
    desk.do(ReleaseClaim(claim_id))
    assert desk.world.workspace.credits_used == before + 6, "what is not listed costs one"
    desk.reload()
    desk.task()
    assert desk.world.workspace.credits_used == before + 11
