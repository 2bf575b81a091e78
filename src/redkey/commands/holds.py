"""Holds: what the holder of a task may do with it: start, heartbeat, release, block, artifacts, plan, complete, fail.

The fence is here: every act of a holder names its claim, and only the attempt's current claim may write. A late
holder whose task nobody took since gets it back first, on the record. How a hold is won is `claims`'s.
"""

from __future__ import annotations

import msgspec

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
    acting_agent,
    stream,
)
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.ledger.content import ref
from redkey.ledger.ports import Content
from redkey.reducers.claim import CLAIM_LIFE_NANOSECONDS, lease_end
from redkey.reducers.entities import Agent, Artifact, Task
from redkey.reducers.outputs import (
    ALLOW,
    INLINE_LIMIT,
    NAMING_RULES,
    manifest,
    missing_outputs,
    unverified_outputs,
    unverified_places,
)
from redkey.reducers.progress import PROGRESS_RULES, wait_nanoseconds
from redkey.reducers.spending import NANO, SPENDING_RULES, nano_usd
from redkey.reducers.task import retries
from redkey.reducers.world import SECOND, World
from redkey.wire.events import (
    AnyPayload,
    ArtifactReady,
    TaskBlocked,
    TaskComplete,
    TaskFailed,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskProgress,
    TaskReleased,
    TaskStalled,
    TaskStarted,
    TaskUsageReported,
    TaskVerification,
)
from redkey.wire.times import write_time

# So many artifact ids stood on a wire before completions had manifests.
_FIRST_RULES_LIMIT = 6
# Every artifact stands in its task's row, which is written with each of them.
ARTIFACTS_LIMIT = 256
# Artifacts name their agent from these rules on.
_ARTIFACT_AGENT_RULES = 2


class Hold(msgspec.Struct):
    """A holder's standing: its task, and the drafts that take an expired hold up again."""

    task: Task
    agent: Agent
    drafts: list[Draft]


def holding(world: World, past: Past, actor: Actor, claim_id: str, now: int, *, idle: bool = False) -> Hold:
    """The fence: the task this claim holds now, or a refusal that says what became of it.

    An agent that was deactivated may give back what it holds (`idle`), and nothing else.
    """
    task = world.tasks.get(world.claims.get(claim_id, ""))
    if task is not None:
        agent = _holder(world, actor, claim_id, task.agent_id)
        if not agent.active and not idle:
            detail = "The agent is deactivated; it may only release what it holds: POST /claims/{}/release."
            raise Refused(409, "inactive_agent", detail.format(claim_id))
        return Hold(task, agent, [])
    late = world.tasks.get(world.expired.get(claim_id, ""))
    if late is not None and lease_end(late, now) > now:
        return _reacquire(world, actor, claim_id, late, now)
    raise _ended(world, past, actor, claim_id)


def _holder(world: World, actor: Actor, claim_id: str, agent_id: str) -> Agent:
    """The agent whose claim it is; a claim of another is answered like a missing one."""
    if not actor.may_act_as(agent_id):
        raise not_found("claim")
    return world.agents[agent_id]


def _reacquire(world: World, actor: Actor, claim_id: str, task: Task, now: int) -> Hold:
    """Nobody took the task since the lease expired: its last holder goes on, on the record."""
    agent = _holder(world, actor, claim_id, task.expired_agent_id)
    if not agent.active:
        raise Refused(409, "inactive_agent", "The agent is deactivated, and its lease has run out.")
    payload = TaskLeaseExtended(
        claim_id=claim_id,
        agent_id=agent.agent_id,
        lease_expires_at=write_time(lease_end(task, now)),
        reacquired=True,
    )
    return Hold(task, agent, [Draft(payload, stream(task), task.context_id, actor.sender(world), leads=True)])


def _ended(world: World, past: Past, actor: Actor, claim_id: str) -> Refused:
    """Why a claim that holds nothing cannot act."""
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


def _on(world: World, actor: Actor, hold: Hold, payload: AnyPayload) -> Decision:
    task = hold.task
    return Decision([*hold.drafts, Draft(payload, stream(task), task.context_id, actor.sender(world))])


def start(world: World, command: StartClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
    if hold.task.state == "working" or hold.task.expired_state == "working":
        raise Refused(409, "already_started", "This claim has been started before.")
    return _on(world, actor, hold, TaskStarted(claim_id=command.claim_id, agent_id=hold.agent.agent_id))


def release(world: World, command: ReleaseClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now, idle=True)
    return _on(world, actor, hold, TaskReleased(claim_id=command.claim_id, agent_id=hold.agent.agent_id))


def heartbeat(world: World, command: HeartbeatClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Extend a hold of which less than half is left; else the durable deadline is the answer.

    To learn that the hold is gone is what heartbeats are for, so that is an answer here and no refusal.
    """
    try:
        hold = holding(world, past, actor, command.claim_id, now)
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
    return _on(world, actor, hold, payload)


def _idle_seconds(task: Task, command: HeartbeatClaim, now: int) -> int:
    """For how long the holder did nothing; a recorded progress report is activity, whoever sends the heartbeats."""
    if not task.progress_at:
        return command.idle_seconds
    return min(command.idle_seconds, (now - task.progress_at) // SECOND)


def _stall(world: World, actor: Actor, hold: Hold, command: HeartbeatClaim) -> Decision:
    """The holder does nothing: open the hold to others. Its next act takes it up again if no other agent did."""
    if hold.drafts or world.workspace.rules < 2:
        # It is open already, or its rules know no stall: then the lease runs out.
        return Decision(answer={"state": "stalled"})
    payload = TaskStalled(claim_id=command.claim_id, agent_id=hold.agent.agent_id, idle_seconds=command.idle_seconds)
    return _on(world, actor, hold, payload)


def block(world: World, command: BlockClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
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
    return _on(world, actor, hold, payload)


def add_artifact(world: World, command: AddArtifact, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
    return Decision([*hold.drafts, _artifact_draft(world, actor, hold, _ready(world, hold.task, command))])


def _ready(world: World, task: Task, command: AddArtifact, under: str = "") -> ArtifactReady:
    """The record of an artifact of the attempt; `under` is where the artifact stands in the request."""
    before = next((one for one in task.artifacts if one.artifact_id == command.artifact_id), None)
    if before is None and not command.is_new:
        raise Refused(422, "unknown_artifact", "This attempt has no such artifact.", f"{under}/artifactId")
    if before is None and len(task.artifacts) >= ARTIFACTS_LIMIT:
        detail = f"An attempt has at most {ARTIFACTS_LIMIT} artifacts; put more into a manifest artifact."
        raise Refused(422, "artifacts_too_many", detail)
    return ArtifactReady(
        claim_id=command.claim_id,
        artifact_id=command.artifact_id,
        name=command.name,
        version=before.version + 1 if before is not None else 1,
        content_ref=command.content_ref,
        sha256=command.sha256,
        bytes=command.bytes,
        readiness=command.readiness,
        derived_from=command.derived_from or None,
        unverified=True if command.unverified and world.workspace.rules >= NAMING_RULES else None,
    )


def _with_artifacts(world: World, task: Task, command: CompleteClaim) -> tuple[Task, list[ArtifactReady]]:
    """The task as it is after the artifacts that come with its completion, and their records."""
    records: list[ArtifactReady] = []
    brought = [(f"/artifacts/{index}", one) for index, one in enumerate(command.artifacts)]
    names = {one.name for one in task.ready_artifacts().values()}
    names |= {one.name for _, one in brought if one.readiness != "draft"}
    # What was added since the request came needs no substitute.
    brought += [("/output", one) for one in command.outputs if one.name not in names]
    for under, one in brought:
        record = _ready(world, task, one, under)
        records.append(record)
        held = (one.sha256, one.bytes, one.content_ref.sha256)
        added = Artifact(one.artifact_id, one.name, one.readiness, record.version, *held, record.unverified is not None)
        others = tuple(other for other in task.artifacts if other.artifact_id != one.artifact_id)
        task = msgspec.structs.replace(task, artifacts=(*others, added))
    return task, records


def _artifact_draft(world: World, actor: Actor, hold: Hold, record: ArtifactReady, *, leads: bool = False) -> Draft:
    """Name the agent of an artifact. Sources may take all the room: then it is the sender, as it is of a claim."""
    task, sender = hold.task, actor.sender(world)
    if world.workspace.rules >= _ARTIFACT_AGENT_RULES and record.derived_from is None:
        record = msgspec.structs.replace(record, agent_id=hold.agent.agent_id)
    elif world.workspace.rules >= _ARTIFACT_AGENT_RULES and actor.is_runner:
        sender = f"agent:{hold.agent.slug}"
    return Draft(record, stream(task), task.context_id, sender, leads=leads)


def plan(world: World, command: PlanClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
    agent_id = hold.agent.agent_id
    return _on(
        world, actor, hold, TaskPlanCreated(claim_id=command.claim_id, agent_id=agent_id, plan_ref=command.plan_ref)
    )


def report_usage(world: World, command: ReportUsage, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """One wire for each model; a report of nothing asks what the caps leave, and is not recorded."""
    hold = holding(world, past, actor, command.claim_id, now)
    task, agent = hold.task, hold.agent
    if not command.used:
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
        for used in command.used
    ]
    sender = actor.sender(world)
    return Decision([*hold.drafts, *(Draft(wire, stream(task), task.context_id, sender) for wire in wires)])


def report_progress(world: World, command: ReportProgress, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Record how far the work has come, at most once in an interval; what comes sooner is answered, not recorded.

    A report is only a word to those who watch, so too many of them, or rules that do not know them, are no refusal.
    """
    hold = holding(world, past, actor, command.claim_id, now)
    task = hold.task
    told = {"task_id": task.task_id, "claim_id": command.claim_id}
    if world.workspace.rules < PROGRESS_RULES:
        return Decision(answer={**told, "reason": "rules_too_old"})
    wait = wait_nanoseconds(task, now)
    if wait and not hold.drafts:
        return Decision(answer={**told, "reason": "too_often", "wait_nanoseconds": wait})
    payload = TaskProgress(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        percent=command.percent,
        text_ref=command.text_ref,
    )
    return _on(world, actor, hold, payload)


def complete(world: World, command: CompleteClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
    _check_next(world, actor, command.claim_next)
    task, added = _with_artifacts(world, hold.task, command)
    hold.drafts += [_artifact_draft(world, actor, hold, one, leads=True) for one in added]
    outputs = _outputs(world, task, command)
    duration = command.duration_seconds
    if duration is None:
        duration = max(0, now - (task.started_at or task.claimed_at) + SECOND // 2) // SECOND
    reported = task.claim_nano_usd
    if nano_usd(command.cost_usd) > reported and world.workspace.rules >= SPENDING_RULES:
        # Costs count where they are reported, so the completion brings a report of what was not.
        usage = TaskUsageReported(
            claim_id=command.claim_id,
            agent_id=hold.agent.agent_id,
            cost_usd=(nano_usd(command.cost_usd) - reported) / NANO,
        )
        hold.drafts.append(Draft(usage, stream(task), task.context_id, actor.sender(world), leads=True))
    payload = TaskComplete(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        artifact_ids=outputs.named if outputs.manifest is None else (),
        manifest_ref=None if outputs.manifest is None else ref(outputs.manifest),
        unverified=outputs.unverified or None,
        cost_usd=command.cost_usd,
        duration_seconds=min(duration, CLAIM_LIFE_NANOSECONDS // SECOND),
        verification=TaskVerification(mechanical="pass", semantic=command.semantic, attempts=command.attempts),
        output_ref=command.output_ref,
    )
    decision = _on(world, actor, hold, payload)
    if outputs.manifest is not None:
        decision.drafts[-1].contents = (outputs.manifest,)
    return decision


class _Outputs(msgspec.Struct):
    """The artifacts that a completion names, and the places of those that RedKey did not see."""

    named: tuple[str, ...]
    unverified: tuple[int, ...] = ()
    # Names the artifacts when they are many.
    manifest: Content | None = None


def _outputs(world: World, task: Task, command: CompleteClaim) -> _Outputs:
    """Name the artifacts of a completion: those that the caller lists, or all; and every required output."""
    ready, rules = task.ready_artifacts(), world.workspace.rules
    listed = command.artifact_ids or tuple(ready)
    if rules < NAMING_RULES:
        listed = command.artifact_ids or listed[:_FIRST_RULES_LIMIT]
    else:
        listed += tuple(key for key, one in ready.items() if one.name in task.outputs and key not in listed)
    missing = missing_outputs(task.outputs, ready, listed, rules)
    if missing:
        detail = (
            f"No ready artifact on this attempt for: {', '.join(missing[:8])}. Complete with `artifacts` or with an "
            f"`output` that has a field of this name, or add it before: POST /claims/{command.claim_id}/artifacts."
        )
        raise Refused(422, "missing_artifact", detail, "/artifactIds")
    if rules < NAMING_RULES:
        return _Outputs(listed)
    by_manifest = len(listed) > INLINE_LIMIT
    named = tuple(sorted(ready)) if by_manifest else listed
    judged = {
        key: msgspec.structs.replace(one, unverified=True) if key in command.unseen else one
        for key, one in ready.items()
    }
    doubtful = unverified_outputs(task.outputs, judged, named)
    if doubtful and world.workspace.unverified_outputs != ALLOW:
        names = ", ".join(doubtful[:8])
        detail = f"RedKey did not see the bytes of these required outputs: {names}."
        raise Refused(422, "unverified_artifact", detail, "/artifactIds")
    return _Outputs(named, unverified_places(judged, named), manifest(ready) if by_manifest else None)


def fail(world: World, command: FailClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    hold = holding(world, past, actor, command.claim_id, now)
    _check_next(world, actor, command.claim_next)
    payload = TaskFailed(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        kind=command.kind,
        retry=retries(hold.task, command.kind),
        reason_ref=command.reason_ref,
    )
    return _on(world, actor, hold, payload)


def _check_next(world: World, actor: Actor, command: ClaimNext | None) -> None:
    """A claim that is asked for with the end of a hold must be possible to ask for, or nothing is recorded."""
    if command is not None:
        acting_agent(world, actor, command.agent_id)
        if command.queue_id not in world.queues:
            raise not_found("queue")
