"""Active claims: the check before every write of a holder, late holders, and how claims end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from redkey.commands.actor import Actor
from redkey.commands.claims import (
    AddArtifact,
    BlockClaim,
    ClaimNext,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    ReportProgress,
    ReportUsage,
    StartClaim,
    Used,
)
from redkey.commands.decision import Refused
from redkey.commands.registry import CreateQueue, UpdateQueue
from redkey.commands.tasks import CancelTask
from redkey.readmodel.events import show
from redkey.reducers.world import SECOND
from redkey.wire.ids import ulid
from redkey.wire.times import parse_time
from tests.harness.desk import QUEUE, Desk, ref_of

ARTIFACT = "art_" + ulid(1, bytes(10))
# Every command of a holder that writes; a heartbeat has tests of its own.
ACTS: dict[str, Callable[[str], Any]] = {
    "start": StartClaim,
    "release": ReleaseClaim,
    "block": lambda claim_id: BlockClaim(claim_id, "auth", ref_of("why")),
    "artifact": lambda claim_id: artifact(claim_id),
    "plan": lambda claim_id: PlanClaim(claim_id, ref_of("plan")),
    "progress": lambda claim_id: ReportProgress(claim_id, 60, ref_of("half")),
    "usage": lambda claim_id: ReportUsage(claim_id, (Used("gpt-5", 0.25),)),
    "complete": CompleteClaim,
    "fail": lambda claim_id: FailClaim(claim_id, "error", ref_of("why")),
}
every_act = pytest.mark.parametrize("act", ACTS.values(), ids=list(ACTS))


def artifact(claim_id: str, name: str = "report", artifact_id: str = ARTIFACT, readiness: str = "ready") -> AddArtifact:
    return AddArtifact(claim_id, artifact_id, name, ref_of("about"), "ab" * 32, 7, readiness)


def refusal(desk: Desk, command: Any, caller: Any = None) -> tuple[int, str]:
    before = desk.world.sequence
    with pytest.raises(Refused) as refused:
        desk.do(command, caller)
    assert desk.world.sequence == before, "a refusal records nothing"
    return refused.value.status, refused.value.code


@every_act
def test_the_current_holder_may_act(desk: Desk, act: Callable[[str], Any]) -> None:
    claim_id = desk.hold(desk.task(), desk.agent("ada"))
    assert desk.do(act(claim_id)).records


@every_act
def test_a_holder_whose_task_another_took_is_refused_and_nothing_changes(desk: Desk, act: Callable[[str], Any]) -> None:
    late, agent, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    stale = desk.hold(task, late, 5)
    desk.clock.advance(6)
    current = desk.hold(task, agent)
    assert refusal(desk, act(stale)) == (409, "lease_lost")
    assert desk.world.tasks[task].claim_id == current


@every_act
def test_a_holder_that_gave_its_task_up_is_refused(desk: Desk, act: Callable[[str], Any]) -> None:
    claim_id = desk.hold(desk.task(), desk.agent("ada"))
    desk.do(ReleaseClaim(claim_id))
    assert refusal(desk, act(claim_id)) == (409, "lease_lost")


@every_act
def test_nothing_changes_a_task_that_has_ended(desk: Desk, act: Callable[[str], Any]) -> None:
    claim_id = desk.hold(desk.task(), desk.agent("ada"))
    desk.complete(claim_id)
    assert refusal(desk, act(claim_id)) == (409, "already_terminal")
    desk.reload()
    assert refusal(desk, act(claim_id)) == (409, "already_terminal")
    desk.tick(3600)
    desk.task()
    assert refusal(desk, act(claim_id)) == (409, "already_terminal"), "the task has left the world"


@every_act
def test_a_missed_claim_gives_no_rights(desk: Desk, act: Callable[[str], Any]) -> None:
    task = desk.task()
    desk.hold(task, desk.agent("ada"))
    missed = desk.claim(task, desk.agent("bob")).wire["payload"]["claim_id"]
    assert refusal(desk, act(missed)) == (409, "lease_lost")


@every_act
def test_a_claim_of_another_agent_is_answered_like_a_missing_one(desk: Desk, act: Callable[[str], Any]) -> None:
    ada, bob, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, ada)
    answers = []
    for named in (claim_id, "clm_" + "0" * 26):
        with pytest.raises(Refused) as refused:
            desk.do(act(named), desk.key_of(bob))
        answers.append((refused.value.status, refused.value.code, refused.value.message.replace(named, "")))
    assert answers[0] == answers[1]
    assert answers[0][:2] == (404, "claim_not_found")
    desk.complete(claim_id)
    assert refusal(desk, act(claim_id), desk.key_of(bob)) == (404, "claim_not_found")


@every_act
def test_a_late_holder_of_an_unclaimed_task_continues_and_that_is_recorded(
    desk: Desk, act: Callable[[str], Any]
) -> None:
    claim_id = desk.hold(desk.task(), desk.agent("ada"), 60)
    desk.tick(61)
    before = desk.world.sequence
    desk.do(act(claim_id))
    again, acted = desk.records(before)[:2]
    assert again.wire["type"] == "task.lease_extended"
    assert again.wire["payload"]["reacquired"] is True
    assert parse_time(again.wire["payload"]["lease_expires_at"]) == again.timestamp + 60 * SECOND, "the lease it had"
    assert "reacquired" not in acted.wire["payload"]


def test_a_late_holder_resumes_the_state_it_had_and_loses_no_lease_by_it(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    claim_id = desk.hold(task, agent, 60)
    desk.do(StartClaim(claim_id))
    desk.tick(61)
    assert (desk.state(task), desk.world.tasks[task].lease_losses) == ("available", 1)
    desk.do(HeartbeatClaim(claim_id))
    assert (desk.state(task), desk.world.tasks[task].lease_losses) == ("working", 0)
    assert desk.world.agents[agent].live_claims == 1


def test_a_late_holder_survives_a_restart_between(desk: Desk) -> None:
    task = desk.task()
    claim_id = desk.hold(task, desk.agent("ada"), 60)
    desk.tick(61)
    desk.reload()
    desk.complete(claim_id)
    assert desk.state(task) == "completed"


# Heartbeats.


def heartbeat(desk: Desk, claim_id: str) -> tuple[str, bool]:
    """Return the reported state, and whether it was recorded."""
    before = desk.world.sequence
    outcome = desk.do(HeartbeatClaim(claim_id))
    recorded = desk.world.sequence > before
    return ("held" if recorded else outcome.answer["state"]), recorded  # type: ignore[index]


def test_heartbeats_are_recorded_only_when_less_than_half_of_the_lease_is_left(desk: Desk) -> None:
    task = desk.task()
    claim_id = desk.hold(task, desk.agent("ada"), 100)
    deadline = desk.world.tasks[task].lease_expires_at
    desk.clock.advance(49)
    answer = desk.do(HeartbeatClaim(claim_id)).answer
    assert answer == {"state": "held", "lease_expires_at": deadline}, "the durable deadline is repeated"
    desk.clock.advance(2)
    assert heartbeat(desk, claim_id) == ("held", True)
    assert desk.world.tasks[task].lease_expires_at == desk.world.timestamp + 100 * SECOND


def test_a_heartbeat_tells_a_stale_holder_to_stop(desk: Desk) -> None:
    late, agent, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    stale = desk.hold(task, late, 5)
    desk.clock.advance(6)
    desk.hold(task, agent)
    assert heartbeat(desk, stale) == ("lease_lost", False)


def test_a_heartbeat_reports_that_the_task_was_cancelled(desk: Desk) -> None:
    task = desk.task()
    claim_id = desk.hold(task, desk.agent("ada"))
    desk.do(CancelTask(task))
    assert heartbeat(desk, claim_id) == ("cancelled", False)


def test_a_holder_that_does_nothing_for_too_long_stalls_and_others_may_claim(desk: Desk) -> None:
    idle, agent, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    claim_id = desk.hold(task, idle)
    assert desk.do(HeartbeatClaim(claim_id, 1799)).answer is not None
    desk.do(HeartbeatClaim(claim_id, 1800))
    assert desk.types()[-1] == "task.stalled"
    assert (desk.world.tasks[task].state, desk.world.tasks[task].lease_losses) == ("available", 1)
    assert desk.do(HeartbeatClaim(claim_id, 1830)).answer == {"state": "stalled"}, "it is recorded once"
    desk.hold(task, agent)
    assert heartbeat(desk, claim_id) == ("lease_lost", False)


def test_the_next_act_of_a_stalled_holder_resumes_the_task(desk: Desk) -> None:
    task = desk.task()
    claim_id = desk.hold(task, desk.agent("ada"))
    desk.do(StartClaim(claim_id))
    desk.do(UpdateQueue(QUEUE, {"idle_seconds": 60}))
    desk.do(HeartbeatClaim(claim_id, 60))
    assert heartbeat(desk, claim_id) == ("held", True)
    assert (desk.world.tasks[task].state, desk.world.tasks[task].lease_losses) == ("working", 0)
    desk.do(HeartbeatClaim(claim_id, 60))
    desk.do(CompleteClaim(claim_id))
    assert desk.world.tasks[task].state == "completed"


def test_a_heartbeat_of_an_unknown_agent_is_not_found(desk: Desk) -> None:
    assert refusal(desk, HeartbeatClaim("clm_" + "0" * 26)) == (404, "claim_not_found")


def test_a_claim_lives_at_most_seven_days(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    claim_id = desk.hold(task, agent, 86_400)
    ends = desk.world.tasks[task].claimed_at + 7 * 86_400 * SECOND
    for _ in range(13):
        desk.clock.advance(43_300)
        desk.do(HeartbeatClaim(claim_id))
    assert desk.world.tasks[task].lease_expires_at == ends
    desk.clock.advance(43_300)
    assert refusal_after_due(desk, claim_id) == (409, "lease_lost"), "nothing brings it back"


def refusal_after_due(desk: Desk, claim_id: str) -> tuple[int, str]:
    desk.tick()
    return refusal(desk, CompleteClaim(claim_id))


# What holders do.


def test_start_is_recorded_once(desk: Desk) -> None:
    task = desk.task()
    claim_id = desk.hold(task, desk.agent("ada"))
    desk.do(StartClaim(claim_id))
    assert desk.state(task) == "working"
    assert refusal(desk, StartClaim(claim_id)) == (409, "already_started")


def test_a_completion_needs_every_required_output_ready_on_this_attempt(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task(outputs=("report", "data"), max_attempts=2)
    claim_id = desk.hold(task, agent)
    desk.do(artifact(claim_id))
    assert refusal(desk, CompleteClaim(claim_id)) == (422, "missing_artifact")
    desk.do(artifact(claim_id, "data", "art_" + ulid(2, bytes(10)), "draft"))
    assert refusal(desk, CompleteClaim(claim_id)) == (422, "missing_artifact"), "a draft is not ready"
    desk.do(FailClaim(claim_id, "error"))
    again = desk.hold(task, agent)
    assert refusal(desk, CompleteClaim(again)) == (422, "missing_artifact"), "another attempt begins with nothing"
    desk.do(artifact(again))
    desk.do(artifact(again, "data", "art_" + ulid(2, bytes(10))))
    completed = desk.complete(again).records[0].wire["payload"]
    assert len(completed["artifact_ids"]) == 2
    assert completed["verification"] == {"mechanical": "pass", "semantic": "skipped", "attempts": 1}


def test_a_completion_names_only_artifacts_of_the_attempt(desk: Desk) -> None:
    claim_id = desk.hold(desk.task(), desk.agent("ada"))
    assert refusal(desk, CompleteClaim(claim_id, (ARTIFACT,))) == (422, "missing_artifact")


def test_the_time_it_took_is_counted_from_the_start_or_the_claim(desk: Desk) -> None:
    started, never_started = (desk.hold(desk.task(), desk.agent(slug)) for slug in ("ada", "bob"))
    desk.clock.advance(5)
    desk.do(StartClaim(started))
    desk.clock.advance(7)
    took = [desk.complete(claim).records[0].wire["payload"]["duration_seconds"] for claim in (started, never_started)]
    assert took == [7, 12]


def test_an_agent_can_complete_without_start(desk: Desk) -> None:
    task = desk.task()
    desk.complete(desk.hold(task, desk.agent("ada")))
    assert "task.started" not in desk.types()
    assert desk.state(task) == "completed"


@pytest.mark.parametrize("end", [CompleteClaim, lambda claim_id, **more: FailClaim(claim_id, "error", **more)])
def test_the_next_claim_comes_with_the_end_of_the_last(desk: Desk, end: Callable[..., Any]) -> None:
    agent, first, second = desk.agent("ada"), desk.task(), desk.task()
    claim_id = desk.hold(first, agent)
    outcome = desk.do(end(claim_id, claim_next=ClaimNext(QUEUE, agent, 60)))
    assert outcome.records[0].wire["type"] in ("task.complete", "task.failed")
    assert outcome.next is not None
    claimed = outcome.next.first("task.claimed")
    assert claimed is not None
    assert claimed.wire["stream"]["stream_id"] == f"task:{second}:attempt:1"
    assert outcome.next.records[0].wire["stream"]["causation_id"] == outcome.records[0].wire["wire_id"]


def test_the_next_claim_may_find_nothing(desk: Desk) -> None:
    agent = desk.agent("ada")
    outcome = desk.complete(desk.hold(desk.task(), agent), claim_next=ClaimNext(QUEUE, agent))
    assert outcome.next is not None
    assert outcome.next.answer == {"status": "no_tasks"}


def test_an_end_whose_next_claim_cannot_be_asked_for_is_refused_whole(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    claim_id = desk.hold(desk.task(), ada)
    for following, code in (
        (ClaimNext("queue_none", ada), "queue_not_found"),
        (ClaimNext(QUEUE, bob), "agent_not_found"),
    ):
        command = CompleteClaim(claim_id, claim_next=following)
        assert refusal(desk, command, desk.key_of(ada)) == (404, code)


def test_live_claims_are_counted_through_every_end(desk: Desk) -> None:
    agent = desk.agent("ada")
    ends = [*(act for name, act in ACTS.items() if name in ("release", "block", "complete", "fail"))]
    claims = [desk.hold(desk.task(), agent, 60) for _ in range(len(ends) + 2)]
    assert desk.world.agents[agent].live_claims == len(claims)
    for act, claim_id in zip(ends, claims, strict=False):
        desk.do(act(claim_id))
    desk.do(CancelTask(desk.world.claims[claims[-1]]))
    assert desk.world.agents[agent].live_claims == 1
    desk.tick(61)
    assert desk.world.agents[agent].live_claims == 0


def test_a_lease_comes_from_the_claim_the_task_or_the_queue(desk: Desk) -> None:
    desk.do(CreateQueue("queue_slow", {"lease_seconds": 300}))
    agent = desk.agent("ada")
    leases = []
    for queue_id, task_lease, asked in ((QUEUE, 0, 0), ("queue_slow", 0, 0), ("queue_slow", 40, 0), (QUEUE, 40, 50)):
        task = desk.task(queue_id, lease_seconds=task_lease)
        desk.hold(task, agent, asked)
        leases.append(desk.world.tasks[task].lease_seconds_held)
    assert leases == [900, 300, 40, 50]


@pytest.mark.parametrize("sources", [(), ("art_" + ulid(2, bytes(10)),)])
def test_an_artifact_that_a_runner_adds_shows_its_agent(desk: Desk, sources: tuple[str, ...]) -> None:
    agent = desk.agent("ada")
    claim_id = desk.hold(desk.task(), agent)
    runner = Actor(desk.workspace_id, "key_" + ulid(3, bytes(10)), frozenset({"runner"}))
    added = desk.do(msgspec.structs.replace(artifact(claim_id), derived_from=sources), runner).records[0]
    shown = show(added.event, added.sequence, added.timestamp).actor
    # Sources may take all the room of a wire: then the agent is the sender, and its name is what is shown.
    assert (shown.type, shown.id) == (("agent", "ada") if sources else ("agent", agent))
    assert added.wire["sender"] == ("agent:ada" if sources else f"runner:{runner.key_id}")
