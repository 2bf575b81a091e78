"""What records mean for tasks: every wire on a task's stream, moved by the state-machine contract.

A wire that the contract or a guard refuses is void, with a reason, and changes nothing. What ends a hold,
opens a dependent or calls for a retry puts it on the agenda; the wire that says so takes it off again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from sys import intern
from typing import Any

import msgspec

from redkey.plans.structure import GatePolicy
from redkey.reducers import workflow
from redkey.reducers.entities import PRIORITIES, Artifact, Task
from redkey.reducers.event import Event
from redkey.reducers.machine import RESUME, SAME, Moves, machine
from redkey.reducers.world import BLOCK_ROUTES, SECOND, SUPERVISOR_ROLE, World
from redkey.wire.rules import SYSTEM_FAILURES
from redkey.wire.times import parse_time

Void = str | None


def created(world: World, e: Event) -> Void:
    payload, stream = e.payload, e.wire["stream"]
    queue = world.queues.get(payload["queue_id"])
    if queue is None:
        return "unknown_queue"
    refused = workflow.refuses(world, e) if "workflow_id" in payload else None
    if refused is not None:
        return refused
    before = world.tasks.get(e.subject)
    if before is not None and not (_may_retry(world, before) and e.attempt == before.attempt + 1):
        return "attempt_exists"
    needs = _needs(world, e)
    content, pinned = payload["content_ref"], payload.get("structure_ref")
    task = Task(
        task_id=e.subject,
        attempt=e.attempt,
        state="created",
        queue_id=queue.queue_id,
        priority=PRIORITIES.index(payload["priority"]),
        sequence=e.sequence,
        created_at=e.timestamp,
        updated_at=e.timestamp,
        content_sha256=content["sha256"],
        content_bytes=content["bytes"],
        context_id=intern(stream["context_id"]),
        roles=tuple(needs.get("roles", ())),
        capabilities=tuple(needs.get("capabilities", ())),
        outputs=tuple(needs.get("outputs", ())),
        waits_for=tuple([key for key in needs.get("waits_for", ()) if not is_done(world, key)]),
        lease_seconds=needs.get("lease_seconds", 0),
        max_attempts=needs.get("max_attempts", queue.settings.max_attempts),
        on_failure=needs.get("on_failure", "reopen"),
        gate=_gate(needs.get("gate")),
        workflow_id=payload.get("workflow_id", ""),
        plan_task=payload.get("plan_task", ""),
        reference_task_ids=tuple(stream.get("reference_task_ids", ())),
        parent_task_id=stream.get("parent_task_id", ""),
    )
    if pinned is not None:
        task.structure_sha256, task.structure_bytes = pinned["sha256"], pinned["bytes"]
    if "deadline_seconds" in needs:
        task.deadline_at = e.timestamp + needs["deadline_seconds"] * SECOND
        world.at(task.deadline_at, "deadline", task.task_id)
    world.tasks[e.subject] = task
    world.misses.pop(e.subject, None)
    world.agenda.pop(("retry", e.subject), None)
    if before is not None:
        task.note_sha256 = before.note_sha256
        task.gate = task.gate or before.gate
    e.changes.touch("task", e.subject)
    if task.workflow_id:
        workflow.opened(world, task, e)
    else:
        _wait(world, task, e.wire_id)
    return None


def _may_retry(world: World, task: Task) -> bool:
    """True when the attempt ended without success, or another is on the agenda."""
    return task.state in ("failed", "cancelled") or was_rejected(task) or ("retry", task.task_id) in world.agenda


def _needs(world: World, e: Event) -> Mapping[str, Any]:
    """What the task asks of its holder: on the wire, in the structure it names, or in the plan of its run."""
    if "workflow_id" not in e.payload:
        return e.structure if e.structure is not None else e.payload
    run = world.runs[e.payload["workflow_id"]]
    planned = run.plan.tasks[run.places[e.payload["plan_task"]]]
    needs: dict[str, Any] = {
        "roles": (planned.role,),
        "capabilities": planned.capabilities,
        "outputs": planned.outputs,
        "lease_seconds": planned.lease_seconds,
        "max_attempts": planned.max_attempts,
        "on_failure": planned.on_failure,
        "gate": planned.gate,
    }
    return needs | {"deadline_seconds": planned.deadline_seconds} if planned.deadline_seconds else needs


def _gate(policy: Any) -> GatePolicy | None:
    if not policy:
        return None
    return GatePolicy() if policy is True else msgspec.convert(policy, GatePolicy)


def is_done(world: World, task_id: str) -> bool:
    """True when nothing of the task stands before others; one that has left the world was completed long ago."""
    task = world.tasks.get(task_id)
    return task is None or (task.state == "completed" and (task.gate is None or task.gate_passed))


def _wait(world: World, task: Task, cause: str) -> None:
    """Register what the task waits for, or say that nothing stands before it."""
    for dependency in task.waits_for:
        world.dependents.setdefault(dependency, []).append(task.task_id)
        if is_hopeless(world.tasks[dependency]):
            world.follows("dependency_failed", task.task_id, cause)
    if not task.waits_for:
        world.follows("available", task.task_id, cause)


def is_hopeless(task: Task) -> bool:
    """True when what waits for the task fails with it; a failure that blocks waits for somebody to step in."""
    return task.state == "cancelled" or (task.on_failure != "block" and (task.state == "failed" or was_rejected(task)))


def retries(task: Task, kind: str) -> bool:
    """Another attempt follows a failure while the policy has attempts left; a rejected task is never tried again."""
    if kind in ("rejected", "deadline", "dependency_failed"):
        return False
    return task.on_failure == "reopen" and task.attempt < task.max_attempts


def was_rejected(task: Task) -> bool:
    """True when the attempt was completed and not accepted."""
    return task.state == "completed" and task.gate is not None and not task.gate_passed and not task.gate_id


def moved(world: World, e: Event) -> Void:
    """Any other wire on a task's stream: look the move up, check its guard, do what the type does."""
    task = world.tasks.get(e.subject)
    if task is None:
        return "not_created"
    if task.attempt != e.attempt:
        return "attempt_ended" if e.attempt < task.attempt else "not_created"
    if e.wire["stream"]["stream_seq"] > task.stream_seq:
        task.stream_seq = e.wire["stream"]["stream_seq"]
        e.changes.touch("task", e.subject)
    if e.type == "task.available" and _is_early(world, task):
        return "dependency_unsatisfied"
    reason: Void = None
    for to, guard in _moves()[task.state].get(e.type, ()):
        reason = guard(task, e.payload) if guard is not None else None
        if reason is None:
            before = task.state
            if to == RESUME:
                task.state = task.expired_state
            elif to != SAME:
                task.state = to
            task.updated_at = e.timestamp
            e.changes.touch("task", e.subject)
            effect = _EFFECTS.get(e.type)
            if effect is not None:
                effect(world, task, e, before)
            if task.state != before:
                if before == "available":
                    world.withdraw(task)
                if task.workflow_id:
                    workflow.moved(world, task, before, e)
            return None
    return reason or machine().refusals[task.state]


def _is_early(world: World, task: Task) -> bool:
    """True while something stands before the task, or it has to wait for its turn in a run."""
    return task.state == "created" and bool(workflow.is_early(world, task) if task.workflow_id else task.waits_for)


def _holder(task: Task, payload: Mapping[str, Any]) -> Void:
    return None if task.claim_id and payload.get("claim_id") == task.claim_id else "claim_not_current"


def _last_holder(task: Task, payload: Mapping[str, Any]) -> Void:
    again = payload.get("reacquired") and payload["claim_id"] == task.expired_claim_id
    return None if again else "claim_not_current"


def _by_system(task: Task, payload: Mapping[str, Any]) -> Void:
    return None if payload["kind"] in SYSTEM_FAILURES else "transition_refused"


def _holder_or_system(task: Task, payload: Mapping[str, Any]) -> Void:
    return None if payload["kind"] in SYSTEM_FAILURES else _holder(task, payload)


def _outputs_ready(task: Task, payload: Mapping[str, Any]) -> Void:
    return _holder(task, payload) or ("missing_artifact" if missing_outputs(task, payload["artifact_ids"]) else None)


def missing_outputs(task: Task, artifact_ids: list[str]) -> list[str]:
    """The artifact ids and output names that a completion needs and the attempt does not have ready."""
    if not artifact_ids and not task.outputs:
        return []
    ready = [artifact for artifact in task.artifacts if artifact.readiness != "draft"]
    ids = {artifact.artifact_id for artifact in ready}
    names = {artifact.name for artifact in ready}
    return [key for key in artifact_ids if key not in ids] + [name for name in task.outputs if name not in names]


Guard = Callable[[Task, Mapping[str, Any]], Void]
_GUARDS: Mapping[str, Guard] = {
    "holder": _holder,
    "last_holder": _last_holder,
    "by_system": _by_system,
    "holder_or_system": _holder_or_system,
    "outputs_ready": _outputs_ready,
}


@cache
def _moves() -> Moves[Guard | None]:
    return machine().bind(_GUARDS)


def _available(world: World, task: Task, e: Event, before: str) -> None:
    world.agenda.pop(("available", task.task_id), None)
    world.offer(task, e.changes)


def _claimed(world: World, task: Task, e: Event, before: str) -> None:
    payload = e.payload
    task.claim_id, task.agent_id = payload["claim_id"], payload["agent_id"]
    task.winner_claim_id, task.winner_agent_id = task.claim_id, task.agent_id
    task.claimed_at, task.started_at = e.timestamp, 0
    _forget_expired(world, task)
    pending = world.pending.pop(task.claim_id, None)
    task.reserved = ""
    _hold_until(world, task, parse_time(payload["lease_expires_at"]) if "lease_expires_at" in payload else 0)
    task.lease_seconds_held = pending.lease_seconds if pending else (task.lease_expires_at - e.timestamp) // SECOND
    world.claims[task.claim_id] = task.task_id
    _count_claim(world, task.agent_id, 1, e)


def _forget_expired(world: World, task: Task) -> None:
    world.expired.pop(task.expired_claim_id, None)
    task.expired_claim_id = task.expired_agent_id = task.expired_state = ""


def _hold_until(world: World, task: Task, when: int) -> None:
    task.lease_expires_at = when
    if when:
        world.at(when, "lease", task.task_id)


def _count_claim(world: World, agent_id: str, change: int, e: Event) -> None:
    agent = world.agents.get(agent_id)
    if agent is not None:
        agent.live_claims += change
        e.changes.touch("agent", agent_id)


def _let_go(world: World, task: Task, e: Event) -> None:
    if task.claim_id:
        world.claims.pop(task.claim_id, None)
        _count_claim(world, task.agent_id, -1, e)
        # A hold that has ended has no lease to run out.
        world.agenda.pop(("expire", task.task_id), None)
    task.claim_id = task.agent_id = ""
    task.lease_expires_at = task.lease_seconds_held = 0


def _started(world: World, task: Task, e: Event, before: str) -> None:
    task.started_at = e.timestamp


def _extended(world: World, task: Task, e: Event, before: str) -> None:
    if before == "available":
        task.claim_id, task.agent_id = task.expired_claim_id, task.expired_agent_id
        _forget_expired(world, task)
        # Whoever attempted meanwhile has lost to the hold that goes on.
        task.reserved = ""
        task.lease_losses = max(0, task.lease_losses - 1)
        world.agenda.pop(("lease_losses", task.task_id), None)
        world.claims[task.claim_id] = task.task_id
        _count_claim(world, task.agent_id, 1, e)
    _hold_until(world, task, parse_time(e.payload["lease_expires_at"]))


def _expired(world: World, task: Task, e: Event, before: str) -> None:
    task.expired_claim_id, task.expired_agent_id, task.expired_state = task.claim_id, task.agent_id, before
    task.lease_losses += 1
    world.expired[task.claim_id] = task.task_id
    held = task.lease_seconds_held
    _let_go(world, task, e)
    # A late holder takes up the lease it had.
    task.lease_seconds_held = held
    if task.lease_losses >= world.queues[task.queue_id].settings.lease_losses:
        world.follows("lease_losses", task.task_id, e.wire_id)
    else:
        world.offer(task, e.changes)


def _released(world: World, task: Task, e: Event, before: str) -> None:
    _let_go(world, task, e)
    world.offer(task, e.changes)


def _blocked(world: World, task: Task, e: Event, before: str) -> None:
    _let_go(world, task, e)
    task.blocker_type = e.payload["blocker_type"]
    task.reason_sha256, task.reason_bytes = e.payload["reason_ref"]["sha256"], e.payload["reason_ref"]["bytes"]
    open_ones = [key for key in e.payload.get("depends_on", ()) if not is_done(world, key)]
    task.blocked_by = tuple(open_ones)
    for dependency in open_ones:
        world.dependents.setdefault(dependency, []).append(task.task_id)
    if task.blocker_type == "dependency" and e.payload.get("depends_on") and not open_ones:
        world.follows("unblocked", task.task_id, e.wire_id)
    for recipient in recipients(world, task.blocker_type):
        world.follows(f"mail:{recipient}", task.task_id, e.wire_id)


def recipients(world: World, blocker_type: str) -> list[str]:
    """Who is told of a block: each active holder of the roles that can lift it; without one, the humans."""
    roles = (*block_route(world, blocker_type), SUPERVISOR_ROLE)
    agents = [agent_id for role in roles if role in world.roles for agent_id in world.roles[role].agents]
    told = dict.fromkeys(f"agent:{agent_id}" for agent_id in agents if world.agents[agent_id].active)
    return [*told, "human"]


def block_route(world: World, blocker_type: str) -> tuple[str, ...]:
    """The roles that are told of a block: by the policy of the workspace, else by the rules."""
    found = world.workspace.block_routes.get(blocker_type)
    return BLOCK_ROUTES.get(blocker_type, ()) if found is None else found


def _unblocked(world: World, task: Task, e: Event, before: str) -> None:
    world.agenda.pop(("unblocked", task.task_id), None)
    task.blocker_type, task.blocked_by = "", ()
    if "answer_ref" in e.payload:
        task.answer_sha256 = e.payload["answer_ref"]["sha256"]
    world.offer(task, e.changes)


def _artifact(world: World, task: Task, e: Event, before: str) -> None:
    payload = e.payload
    made = Artifact(
        payload["artifact_id"],
        payload["name"],
        payload["readiness"],
        payload["version"],
        payload["sha256"],
        payload["bytes"],
        payload["content_ref"]["sha256"],
    )
    kept = tuple(artifact for artifact in task.artifacts if artifact.artifact_id != made.artifact_id)
    task.artifacts = (*kept, made)


def _complete(world: World, task: Task, e: Event, before: str) -> None:
    if "output_ref" in e.payload:
        task.output_sha256 = e.payload["output_ref"]["sha256"]
    _end(world, task, e)
    if task.gate is None:
        world.release_dependents(task, e.wire_id, e.changes)
    else:
        world.follows("gate", task.task_id, e.wire_id)


def _failed(world: World, task: Task, e: Event, before: str) -> None:
    task.failure_kind = e.payload["kind"]
    if "reason_ref" in e.payload:
        task.reason_sha256, task.reason_bytes = e.payload["reason_ref"]["sha256"], e.payload["reason_ref"]["bytes"]
    _end(world, task, e)
    if e.payload["retry"]:
        world.follows("retry", task.task_id, e.wire_id)
    elif is_hopeless(task):
        world.fail_dependents(task, e.wire_id)
    elif not task.workflow_id:
        world.follows("mail:human", task.task_id, e.wire_id)


def _cancelled(world: World, task: Task, e: Event, before: str) -> None:
    task.cause = e.payload["cause"]
    _end(world, task, e)
    world.fail_dependents(task, e.wire_id)


def _end(world: World, task: Task, e: Event) -> None:
    _let_go(world, task, e)
    _forget_expired(world, task)
    task.reserved = ""
    task.ended_at = e.timestamp
    task.ended_by = e.wire["sender"]
    if world.agenda:
        for kind in ("available", "unblocked", "dependency_failed", "lease_losses", "expire", "cancel"):
            world.agenda.pop((kind, task.task_id), None)
    world.ends(task)


_EFFECTS: dict[str, Callable[[World, Task, Event, str], None]] = {
    "task.available": _available,
    "task.claimed": _claimed,
    "task.started": _started,
    "task.lease_extended": _extended,
    "task.lease_expired": _expired,
    "task.released": _released,
    "task.blocked": _blocked,
    "task.unblocked": _unblocked,
    "artifact.ready": _artifact,
    "task.complete": _complete,
    "task.failed": _failed,
    "task.cancelled": _cancelled,
}
