"""Holds: what the holder of a task may do with it: start, heartbeat, release, block, plan, report.

Every act of a holder names its claim, and only the attempt's current claim may write; `holding` checks that. A late
holder gets its task back first, with a record of it, if no other agent has claimed it. `claims` decides who gets a
hold; `completion` ends one.
"""

from __future__ import annotations

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import (
    BlockClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    ReportProgress,
    ReportUsage,
    StartClaim,
    Used,
    stream,
)
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.reducers.claim import lease_end
from redkey.reducers.entities import Agent, Task
from redkey.reducers.progress import PROGRESS_RULES, wait_nanoseconds
from redkey.reducers.spending import SPENDING_RULES, is_shared, may_call, nano_usd
from redkey.reducers.task import LINEAGE_RULES
from redkey.reducers.world import SECOND, World
from redkey.wire.events import (
    AnyPayload,
    TaskBlocked,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskProgress,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUsageReported,
)
from redkey.wire.times import write_time


class Hold(msgspec.Struct):
    """A holder's current hold: its task, and the drafts that resume it if its lease expired."""

    task: Task
    agent: Agent
    drafts: list[Draft]
    # The wire that the holder's act follows from; empty when unknown.
    cause: str


def holding(world: World, past: Past, actor: Actor, claim_id: str, now: int, ids: Ids, *, idle: bool = False) -> Hold:
    """Return the hold of a claim, or refuse and say what became of it.

    With `idle`, an agent that was deactivated may still release its claim; it may do nothing else.
    """
    task = world.tasks.get(world.claims.get(claim_id, ""))
    if task is not None:
        agent = _holder(world, actor, claim_id, task.agent_id)
        if not agent.active and not idle:
            detail = "The agent is deactivated; it may only release what it holds: POST /claims/{}/release."
            raise Refused(409, "inactive_agent", detail.format(claim_id))
        return Hold(task, agent, [], task.moved_by)
    late = world.tasks.get(world.expired.get(claim_id, ""))
    if late is not None and lease_end(late, now) > now:
        return _reacquire(world, actor, claim_id, late, now, ids)
    raise _ended(world, past, actor, claim_id)


def _holder(world: World, actor: Actor, claim_id: str, agent_id: str) -> Agent:
    """The agent of a claim; a claim of another key's agent is reported as missing."""
    if not actor.may_act_as(agent_id):
        raise not_found("claim")
    return world.agents[agent_id]


def _reacquire(world: World, actor: Actor, claim_id: str, task: Task, now: int, ids: Ids) -> Hold:
    """No other agent claimed the task since the lease expired: its last holder resumes, with a record of it."""
    agent = _holder(world, actor, claim_id, task.expired_agent_id)
    if not agent.active:
        raise Refused(409, "inactive_agent", "The agent is deactivated, and its lease has expired.")
    payload = TaskLeaseExtended(
        claim_id=claim_id,
        agent_id=agent.agent_id,
        lease_expires_at=write_time(lease_end(task, now)),
        reacquired=True,
    )
    wire_id = "wire_" + ids.ulid() if world.workspace.rules >= LINEAGE_RULES else ""
    taken = Draft(payload, stream(task), task.context_id, actor.sender(world), wire_id=wire_id, leads=True)
    return Hold(task, agent, [taken], wire_id)


def _ended(world: World, past: Past, actor: Actor, claim_id: str) -> Refused:
    """Why a claim without a hold cannot act."""
    task = _task_of_past_claim(world, past, actor, claim_id)
    if task.ended_at and task.winner_claim_id == claim_id:
        return Refused(409, "already_terminal", f"The task is {task.state}; a terminal task does not change.")
    now = task.agent_id and f" {task.agent_id} holds it now."
    return Refused(409, "lease_lost", f"This claim does not hold {task.task_id}.{now} Stop working on it.")


def _task_of_past_claim(world: World, past: Past, actor: Actor, claim_id: str) -> Task:
    claim = past.claim(claim_id)
    if claim is None or not actor.may_act_as(claim.agent_id):
        raise not_found("claim")
    task = world.tasks.get(claim.task_id) or past.task(claim.task_id)
    if task is None:
        raise not_found("claim")
    return task


def act(world: World, actor: Actor, hold: Hold, payload: AnyPayload) -> Decision:
    """The decision for one act of a holder, on the stream of its attempt."""
    task = hold.task
    draft = Draft(payload, stream(task), task.context_id, actor.sender(world), causation_id=hold.cause)
    return Decision([*hold.drafts, draft])


def start(world: World, command: StartClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Start the work; once per claim."""
    hold = holding(world, past, actor, command.claim_id, now, ids)
    if hold.task.state == "working" or hold.task.expired_state == "working":
        raise Refused(409, "already_started", "This claim was already started.")
    return act(world, actor, hold, TaskStarted(claim_id=command.claim_id, agent_id=hold.agent.agent_id))


def release(world: World, command: ReleaseClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Release the task."""
    hold = holding(world, past, actor, command.claim_id, now, ids, idle=True)
    return act(world, actor, hold, TaskReleased(claim_id=command.claim_id, agent_id=hold.agent.agent_id))


def heartbeat(world: World, command: HeartbeatClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Extend a lease of which less than half is left; otherwise answer with the recorded deadline.

    A lost claim is an answer here and not a refusal, because heartbeats exist to find that out.
    """
    try:
        hold = holding(world, past, actor, command.claim_id, now, ids)
    except Refused as refused:
        if refused.code not in ("lease_lost", "already_terminal"):
            raise
        ended = _task_of_past_claim(world, past, actor, command.claim_id)
        own = ended.winner_claim_id == command.claim_id and ended.state in ("completed", "failed")
        return Decision(answer={"state": ended.state if own or ended.state == "cancelled" else "lease_lost"})
    task = hold.task
    if _idle_seconds(task, command, now) >= world.queues[task.queue_id].settings.idle_seconds:
        return _stall(world, actor, hold, command)
    if hold.drafts:
        return Decision(hold.drafts)
    until = lease_end(task, now)
    if task.lease_expires_at - now >= task.lease_seconds_held * SECOND // 2 or until <= task.lease_expires_at:
        return Decision(answer={"state": "held", "lease_expires_at": task.lease_expires_at})
    payload = TaskLeaseExtended(claim_id=command.claim_id, agent_id=task.agent_id, lease_expires_at=write_time(until))
    return act(world, actor, hold, payload)


def _idle_seconds(task: Task, command: HeartbeatClaim, now: int) -> int:
    """How long the holder was idle; a recorded progress report counts as activity, no matter who sends heartbeats."""
    if not task.progress_at:
        return command.idle_seconds
    return min(command.idle_seconds, (now - task.progress_at) // SECOND)


def _stall(world: World, actor: Actor, hold: Hold, command: HeartbeatClaim) -> Decision:
    """The holder is idle: offer the task to others. Its next act resumes the hold if no other agent has claimed it."""
    if hold.drafts or world.workspace.rules < 2:
        # The task is already offered, or its rules have no stall: the lease expires instead.
        return Decision(answer={"state": "stalled"})
    payload = TaskStalled(claim_id=command.claim_id, agent_id=hold.agent.agent_id, idle_seconds=command.idle_seconds)
    return act(world, actor, hold, payload)


def block(world: World, command: BlockClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Block the task and end the hold."""
    hold = holding(world, past, actor, command.claim_id, now, ids)
    for dependency in command.depends_on:
        if dependency not in world.tasks or dependency == hold.task.task_id:
            raise Refused(422, "unknown_dependency", f"{dependency[:64]!r} is not another live task.", "/dependsOn")
    payload = TaskBlocked(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        blocker_type=command.blocker_type,
        reason_ref=command.reason_ref,
        depends_on=command.depends_on or None,
        attempts=hold.task.attempt,
    )
    return act(world, actor, hold, payload)


def plan(world: World, command: PlanClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Record the holder's plan."""
    hold = holding(world, past, actor, command.claim_id, now, ids)
    agent_id = hold.agent.agent_id
    return act(
        world, actor, hold, TaskPlanCreated(claim_id=command.claim_id, agent_id=agent_id, plan_ref=command.plan_ref)
    )


def report_usage(world: World, command: ReportUsage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Record usage, one wire for each model, and reserve what the next call may cost if the caps allow the call.

    A report without both frees what was reserved; else it records nothing, and its answer says what the caps leave.
    """
    hold = holding(world, past, actor, command.claim_id, now, ids)
    task, agent = hold.task, hold.agent
    used_nano = sum(nano_usd(used.cost_usd) for used in command.used)
    reserves = command.reserve_usd is not None and is_shared(world) and may_call(world, task, agent, used_nano, now)
    if not command.used and not reserves and not task.reserved_nano_usd:
        return Decision(answer={"task_id": task.task_id, "agent_id": agent.agent_id})
    check_rules(world, SPENDING_RULES)
    wires = [
        TaskUsageReported(
            claim_id=command.claim_id,
            agent_id=agent.agent_id,
            model=used.model or None,
            cost_usd=used.cost_usd,
            input_tokens=used.input_tokens or None,
            output_tokens=used.output_tokens or None,
        )
        for used in command.used or (Used(),)
    ]
    if reserves:
        wires[-1] = msgspec.structs.replace(wires[-1], reserved_usd=command.reserve_usd)
    drafts = [Draft(wire, stream(task), task.context_id, actor.sender(world)) for wire in wires]
    drafts[0].causation_id = hold.cause
    return Decision([*hold.drafts, *drafts])


def report_progress(world: World, command: ReportProgress, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Record progress, at most once per interval; an earlier report is answered but not recorded.

    Progress is only information for watchers, so reports that come too often, or under old rules, are not refused.
    """
    hold = holding(world, past, actor, command.claim_id, now, ids)
    task = hold.task
    answer = {"task_id": task.task_id, "claim_id": command.claim_id}
    if world.workspace.rules < PROGRESS_RULES:
        return Decision(answer={**answer, "reason": "rules_too_old"})
    wait = wait_nanoseconds(world, task, now)
    if wait and not hold.drafts:
        return Decision(answer={**answer, "reason": "too_often", "wait_nanoseconds": wait})
    payload = TaskProgress(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        percent=command.percent,
        text_ref=command.text_ref,
    )
    return act(world, actor, hold, payload)
