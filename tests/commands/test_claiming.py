"""Claims: who may claim a task, who wins, and the outcomes of the others."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.claims import ClaimNext, ClaimTask, FailClaim, ReleaseClaim
from redkey.commands.decision import Refused
from redkey.commands.registry import (
    CreateQueue,
    CreateRole,
    DeactivateAgent,
    GrantRole,
    RevokeRole,
    UpdateAgent,
    UpdateQueue,
)
from redkey.commands.tasks import CancelTask
from redkey.reducers.world import SECOND, TOMBSTONE_NANOSECONDS
from tests.harness.desk import OUTCOMES, QUEUE, Desk

LONG_AFTER = TOMBSTONE_NANOSECONDS // SECOND + 1


def told(desk: Desk, task_id: str, agent_id: str, lease_seconds: int = 0) -> tuple[str, str | None, str | None]:
    wire = desk.claim(task_id, agent_id, lease_seconds).wire
    return wire["type"].removeprefix("task."), wire["payload"].get("reason"), wire["payload"].get("detail")


def test_a_claim_is_attempted_and_won_on_the_record(desk: Desk) -> None:
    agent, task = desk.agent("ada", "role_writer"), desk.task(roles=("role_writer",))
    before = desk.world.sequence
    claim_id = desk.hold(task, agent, 60)
    attempted, claimed = desk.records(before)
    assert attempted.wire["payload"] == {"task_id": task, "attempt": 1, "claim_id": claim_id, "lease_seconds": 60}
    assert claimed.wire["payload"]["role_id"] == "role_writer"
    assert claimed.wire["stream"]["causation_id"] == attempted.wire["wire_id"]
    held = desk.world.tasks[task]
    assert (held.state, held.claim_id, held.agent_id) == ("claimed", claim_id, agent)
    assert held.lease_expires_at == attempted.timestamp + 60 * SECOND


def test_the_first_failing_check_is_the_reason_in_the_order_of_the_rules(desk: Desk) -> None:
    """Everything is wrong at first; after each correction the next reason is reported."""
    desk.do(CreateQueue("queue_busy", {"max_live_claims": 1, "paused": False}))
    agent = desk.agent("ada", "role_writer", "role_editor")
    desk.do(RevokeRole("role_writer", agent))
    upstream = desk.task()
    task = desk.task(
        "queue_busy", roles=("role_writer", "role_editor"), capabilities=("search",), waits_for=(upstream,)
    )
    other = desk.task("queue_busy")
    busy = desk.hold(other, agent)
    desk.do(DeactivateAgent(agent))
    assert told(desk, task, agent, 1) == ("claim_rejected", "inactive_agent", None)
    _activate(desk, agent)
    assert told(desk, task, agent, 1) == ("claim_rejected", "missing_role", "role_writer")
    desk.do(GrantRole("role_writer", agent))
    assert told(desk, task, agent, 1) == ("claim_rejected", "missing_capability", "search")
    _activate(desk, agent, capabilities=("search",))
    assert told(desk, task, agent, 1) == ("claim_rejected", "policy", "live_claims")
    desk.do(ReleaseClaim(busy))
    assert told(desk, task, agent, 1) == ("claim_rejected", "invalid_lease", "5-86400")
    assert told(desk, task, agent) == ("claim_rejected", "dependency_unsatisfied", upstream)
    desk.complete(desk.hold(upstream, desk.agent("bob")))
    desk.do(UpdateQueue("queue_busy", {"paused": True}))
    assert told(desk, task, agent) == ("claim_rejected", "task_not_available", "paused")
    desk.do(UpdateQueue("queue_busy", {"paused": False}))
    assert told(desk, task, agent) == ("claimed", None, None)


def _activate(desk: Desk, agent_id: str, **more: Any) -> None:
    desk.do(UpdateAgent(agent_id, active=True, **more))


@pytest.mark.parametrize("lease_seconds", [5, 24 * 3600])
def test_the_shortest_and_the_longest_lease_are_granted(desk: Desk, lease_seconds: int) -> None:
    assert told(desk, desk.task(), desk.agent("ada"), lease_seconds)[0] == "claimed"


@pytest.mark.parametrize("lease_seconds", [1, 4, 24 * 3600 + 1])
def test_a_lease_that_cannot_be_granted_is_rejected_on_the_record(desk: Desk, lease_seconds: int) -> None:
    outcome = told(desk, desk.task(), desk.agent("ada"), lease_seconds)
    assert outcome == ("claim_rejected", "invalid_lease", "5-86400")


def test_a_role_capability_counts_as_the_agents_own(desk: Desk) -> None:
    desk.do(CreateRole("role_scout", capabilities=("search",)))
    agent, task = desk.agent("ada"), desk.task(capabilities=("search",))
    assert told(desk, task, agent) == ("claim_rejected", "missing_capability", "search")
    desk.do(GrantRole("role_scout", agent))
    assert told(desk, task, agent)[0] == "claimed"


def test_a_loser_learns_who_won_while_the_task_is_held_and_after_it_is_done(desk: Desk) -> None:
    winner, early, late, task = desk.agent("ada"), desk.agent("bob"), desk.agent("cleo"), desk.task()
    claim_id = desk.hold(task, winner)
    for agent, reason in ((early, "claim_already_won"), (late, "task_completed")):
        wire = desk.claim(task, agent).wire
        assert wire["type"] == "task.claim_missed"
        assert wire["payload"]["reason"] == reason
        assert (wire["payload"]["winning_claim_id"], wire["payload"]["winning_agent_id"]) == (claim_id, winner)
        if agent == early:
            desk.complete(claim_id)


def test_a_missed_claim_names_the_current_holder_and_not_the_first_one(desk: Desk) -> None:
    first, second, loser, task = desk.agent("ada"), desk.agent("bob"), desk.agent("cleo"), desk.task()
    desk.do(ReleaseClaim(desk.hold(task, first)))
    claim_id = desk.hold(task, second)
    payload = desk.claim(task, loser).wire["payload"]
    assert (payload["winning_claim_id"], payload["winning_agent_id"]) == (claim_id, second)


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_task_that_ended_without_success_has_no_winner(desk: Desk, end: str) -> None:
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, agent)
    desk.do(CancelTask(task) if end == "cancelled" else FailClaim(claim_id, "error"))
    assert told(desk, task, loser) == ("claim_rejected", "task_not_available", end)


def test_an_agent_that_claims_what_it_holds_gets_the_same_claim_and_adds_nothing(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    claim_id = desk.hold(task, agent)
    before = desk.world.sequence
    assert desk.do(ClaimTask(task, agent)).answer == {"held": claim_id}
    assert desk.world.sequence == before


def test_a_loser_in_a_loop_adds_nothing_to_the_ledger(desk: Desk) -> None:
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, agent)
    first = desk.claim(task, loser)
    before = desk.world.sequence
    for _ in range(3):
        assert desk.claim(task, loser) == first
    desk.complete(claim_id)
    assert desk.claim(task, loser) == first, "the winner is the same"
    assert desk.world.sequence == before + 1


def test_a_refused_agent_in_a_loop_adds_nothing_until_the_reason_changes(desk: Desk) -> None:
    agent = desk.agent("ada", "role_editor")
    task = desk.task(roles=("role_editor",), capabilities=("search", "write"))
    first = desk.claim(task, agent)
    before = desk.world.sequence
    assert desk.claim(task, agent) == first
    assert desk.world.sequence == before
    _activate(desk, agent, capabilities=("search",))
    second = desk.claim(task, agent)
    assert (first.wire["payload"]["detail"], second.wire["payload"]["detail"]) == ("search", "write")


def test_the_reply_to_a_loser_survives_a_restart(desk: Desk) -> None:
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    desk.hold(task, agent)
    first = desk.claim(task, loser)
    desk.reload()
    before = desk.world.sequence
    assert desk.claim(task, loser) == first
    assert desk.world.sequence == before


def test_a_new_winner_and_a_new_attempt_are_reported_again(desk: Desk) -> None:
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task(max_attempts=2)
    claim_id = desk.hold(task, agent)
    first = desk.claim(task, loser)
    desk.do(FailClaim(claim_id, "error"))
    again = desk.hold(task, agent)
    second = desk.claim(task, loser)
    assert first.wire["payload"]["winning_claim_id"] == claim_id
    assert second.wire["payload"] | {"claim_id": ""} == {
        "task_id": task,
        "claim_id": "",
        "attempt": 2,
        "reason": "claim_already_won",
        "winning_claim_id": again,
        "winning_agent_id": agent,
    }


def test_an_expired_hold_loses_to_a_claim_in_the_decision_itself(desk: Desk) -> None:
    """No timer ran: the claim finds the expired lease, records the expiry, and wins."""
    late, agent, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    desk.hold(task, late, 5)
    desk.clock.advance(5.001)
    before = desk.world.sequence
    claim_id = desk.hold(task, agent)
    assert desk.types(before) == ["task.lease_expired", "task.claim_attempted", "task.claimed"]
    assert desk.world.tasks[task].claim_id == claim_id
    assert desk.world.tasks[task].lease_losses == 1


def test_a_lease_that_ends_now_is_not_over_a_moment_before(desk: Desk) -> None:
    holder, agent, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    desk.hold(task, holder, 5)
    desk.clock.advance(4.9)
    assert told(desk, task, agent)[0] == "claim_missed"


def test_a_claim_on_a_task_that_has_left_the_world_names_the_winner_from_its_row(desk: Desk) -> None:
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, agent)
    desk.complete(claim_id)
    desk.clock.advance(LONG_AFTER)
    desk.task()
    assert task not in desk.world.tasks
    missed = desk.claim(task, loser)
    assert missed.wire["type"] == "task.claim_missed"
    assert missed.wire["payload"] | {"claim_id": ""} == {
        "task_id": task,
        "claim_id": "",
        "attempt": 1,
        "reason": "task_completed",
        "winning_claim_id": claim_id,
        "winning_agent_id": agent,
    }
    before = desk.world.sequence
    assert desk.claim(task, loser) == missed
    assert desk.world.sequence == before


def test_a_claim_that_makes_its_task_leave_the_world_names_the_winner_too(desk: Desk) -> None:
    """The task's time has passed and nothing was recorded since, so the attempt's record would drop it from memory."""
    agent, loser, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, agent)
    desk.complete(claim_id)
    desk.clock.advance(LONG_AFTER)
    assert task in desk.world.tasks
    missed = desk.claim(task, loser)
    assert (missed.wire["type"], missed.wire["payload"].get("winning_claim_id")) == ("task.claim_missed", claim_id)
    assert task not in desk.world.tasks


def test_a_claim_on_a_past_task_nobody_completed_is_rejected(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    desk.do(CancelTask(task))
    desk.clock.advance(LONG_AFTER)
    assert told(desk, task, agent) == ("claim_rejected", "task_not_available", "cancelled")


def test_what_is_not_there_is_not_found_and_nothing_is_recorded(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    before = desk.world.sequence
    for command, code in (
        (ClaimTask("task_" + "0" * 26, agent), "task_not_found"),
        (ClaimTask(task, "agt_" + "0" * 26), "agent_not_found"),
        (ClaimNext("queue_none", agent), "queue_not_found"),
    ):
        with pytest.raises(Refused) as refused:
            desk.do(command)
        assert (refused.value.status, refused.value.code) == (404, code)
    assert desk.world.sequence == before


def test_an_agent_key_claims_for_its_agent_alone(desk: Desk) -> None:
    ada, bob, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    with pytest.raises(Refused) as refused:
        desk.do(ClaimTask(task, bob), desk.key_of(ada))
    assert (refused.value.status, refused.value.code) == (404, "agent_not_found")
    won = desk.do(ClaimTask(task, ada), desk.key_of(ada)).first("task.claim_attempted")
    assert won is not None
    assert won.wire["sender"] == "agent:ada"


# The next task of a queue.


def next_of(desk: Desk, agent_id: str, count: int = 1, queue_id: str = QUEUE) -> list[str]:
    outcome = desk.do(ClaimNext(queue_id, agent_id, count=count))
    return [one.wire["stream"]["stream_id"].split(":")[1] for one in outcome.records if one.wire["type"] == OUTCOMES[0]]


def test_the_next_task_is_the_most_urgent_and_the_oldest_among_equals(desk: Desk) -> None:
    low, high, urgent = desk.task(priority="low"), desk.task(priority="high"), desk.task(priority="urgent")
    first, second = desk.task(), desk.task()
    agent = desk.agent("ada")
    assert [next_of(desk, agent)[0] for _ in range(5)] == [urgent, high, first, second, low]
    assert desk.do(ClaimNext(QUEUE, agent)).answer == {"status": "no_tasks"}


def test_the_next_task_is_one_the_agent_may_have(desk: Desk) -> None:
    agent = desk.agent("ada", "role_writer", capabilities=("search",))
    desk.agent("bob", "role_editor")
    for more in (
        {"roles": ("role_editor",)},
        {"roles": ("role_writer", "role_editor")},
        {"capabilities": ("paint",)},
    ):
        desk.task(priority="urgent", **more)
    mine = desk.task(roles=("role_writer",), capabilities=("search",), priority="low")
    assert next_of(desk, agent, 5) == [mine]


def test_several_tasks_come_at_once_in_order_over_requirement_sets(desk: Desk) -> None:
    agent = desk.agent("ada", "role_writer")
    tasks = [desk.task(roles=("role_writer",) if index % 2 else ()) for index in range(6)]
    assert next_of(desk, agent, 4) == tasks[:4]
    assert next_of(desk, agent, 4) == tasks[4:]


def test_several_tasks_come_only_up_to_the_bound_on_live_claims(desk: Desk) -> None:
    desk.do(CreateQueue("queue_few", {"max_live_claims": 3}))
    agent, tasks = desk.agent("ada"), [desk.task("queue_few") for _ in range(5)]
    assert next_of(desk, agent, 5, "queue_few") == tasks[:3]
    answer = desk.do(ClaimNext("queue_few", agent)).answer
    assert answer == {"status": "rejected", "reason": "policy", "detail": "live_claims"}


def test_a_released_and_an_expired_task_keep_their_place_in_the_queue(desk: Desk) -> None:
    agent, first, second = desk.agent("ada"), desk.task(), desk.task()
    desk.do(ReleaseClaim(desk.hold(first, agent)))
    assert next_of(desk, agent) == [first]
    desk.tick(901)
    assert next_of(desk, agent, 2) == [first, second]


def test_what_claim_next_cannot_grant_is_answered_and_not_recorded(desk: Desk) -> None:
    agent, _ = desk.agent("ada"), desk.task()
    before = desk.world.sequence
    rejected = {"status": "rejected", "reason": "invalid_lease", "detail": "5-86400"}
    assert desk.do(ClaimNext(QUEUE, agent, 1)).answer == rejected
    desk.do(UpdateQueue(QUEUE, {"paused": True}))
    assert desk.do(ClaimNext(QUEUE, agent)).answer == {"status": "no_tasks"}
    desk.do(DeactivateAgent(agent))
    assert desk.do(ClaimNext(QUEUE, agent)).answer == {"status": "rejected", "reason": "inactive_agent"}
    assert desk.types(before) == ["queue.updated", "agent.deactivated"]
