"""Workflows and gates: start, pause, resume and cancel runs; approve and reject gates; publish definitions."""

from __future__ import annotations

from typing import Any, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decide_agents import create_role
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.projects import phase_of
from redkey.commands.registry import CreateRole
from redkey.commands.tasks import check_credits
from redkey.reducers.entities import Gate
from redkey.reducers.run import Run
from redkey.reducers.task import LINEAGE_RULES
from redkey.reducers.world import World
from redkey.wire.events import (
    AnyPayload,
    DefinitionPublished,
    GateApproved,
    GateRejected,
    Ref,
    WorkflowCancelled,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStarted,
)


@final
class StartWorkflow(msgspec.Struct, frozen=True):
    """Start a run of a validated plan: its structure is pinned, its text is content. Creates missing roles."""

    workflow_id: str
    queue_id: str
    structure: dict[str, Any]
    structure_ref: Ref
    content_ref: Ref
    roles: tuple[CreateRole, ...] = ()
    definition_id: str = ""
    version: int = 0
    phase_id: str = ""


@final
class PauseWorkflow(msgspec.Struct, frozen=True):
    """Pause a run: it opens no further tasks until it is resumed."""

    workflow_id: str


@final
class ResumeWorkflow(msgspec.Struct, frozen=True):
    """Resume a paused run: it opens tasks again."""

    workflow_id: str


@final
class CancelWorkflow(msgspec.Struct, frozen=True):
    """End a run and cancel its open tasks."""

    workflow_id: str


@final
class ApproveGate(msgspec.Struct, frozen=True):
    """Approve the completed task that waits at a gate."""

    gate_id: str
    note_ref: Ref | None = None


@final
class RejectGate(msgspec.Struct, frozen=True):
    """Reject the completed task that waits at a gate."""

    gate_id: str
    note_ref: Ref | None = None


@final
class PublishDefinition(msgspec.Struct, frozen=True):
    """Publish the draft as a version. Refused if the draft has changed since this revision."""

    definition_id: str
    version: int
    structure_ref: Ref
    content_ref: Ref
    revision: int = 0


def start(world: World, command: StartWorkflow, actor: Actor, now: int, ids: Ids) -> Decision:
    """Start a run and create the roles it needs."""
    if command.queue_id not in world.queues:
        raise not_found("queue")
    check_credits(world)
    payload = WorkflowStarted(
        queue_id=command.queue_id,
        structure_ref=command.structure_ref,
        content_ref=command.content_ref,
        definition_id=command.definition_id or None,
        version=command.version if command.definition_id else None,
        phase_id=command.phase_id or None,
    )
    where = f"workflow:{command.workflow_id}"
    run = Draft(payload, where, where, actor.sender(world), structure=command.structure)
    if command.phase_id:
        run.correlation_id = f"project:{phase_of(world, command.phase_id).project_id}"
    missing = [role for role in command.roles if role.role_id not in world.roles]
    role_drafts = [draft for role in missing for draft in create_role(world, role, actor, now, ids).drafts]
    # The run comes first, so that its wire carries the request; no task opens before the roles exist.
    return Decision([run, *role_drafts])


def _live(world: World, past: Past, workflow_id: str) -> Run:
    run = world.runs.get(workflow_id)
    if run is None:
        ended = past.workflow(workflow_id)
        if ended is None:
            raise not_found("workflow")
        raise Refused(409, "already_terminal", f"The workflow is {ended.state}; an ended run does not change.")
    return run


def _change(world: World, workflow_id: str, payload: AnyPayload, actor: Actor) -> Decision:
    where = f"workflow:{workflow_id}"
    return Decision([Draft(payload, where, where, actor.sender(world))])


def pause(world: World, command: PauseWorkflow, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Pause a run."""
    if _live(world, past, command.workflow_id).workflow.state == "paused":
        return Decision(answer={"unchanged": True})
    return _change(world, command.workflow_id, WorkflowPaused(), actor)


def resume(world: World, command: ResumeWorkflow, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Resume a paused run: it opens tasks again."""
    if _live(world, past, command.workflow_id).workflow.state == "running":
        return Decision(answer={"unchanged": True})
    return _change(world, command.workflow_id, WorkflowResumed(), actor)


def cancel(world: World, command: CancelWorkflow, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Cancel a run."""
    _live(world, past, command.workflow_id)
    return _change(world, command.workflow_id, WorkflowCancelled(), actor)


def approve(world: World, command: ApproveGate, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Approve a gate."""
    return _decide_gate(world, command, actor, past, GateApproved)


def reject(world: World, command: RejectGate, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Reject a gate."""
    return _decide_gate(world, command, actor, past, GateRejected)


def _decide_gate(
    world: World,
    command: ApproveGate | RejectGate,
    actor: Actor,
    past: Past,
    verdict: type[GateApproved] | type[GateRejected],
) -> Decision:
    gate, sender = _open_gate(world, past, command.gate_id, actor)
    payload = verdict(gate_id=gate.gate_id, task_id=gate.task_id, by=sender, note_ref=command.note_ref)
    where = f"workflow:{gate.workflow_id}" if gate.workflow_id else f"queue:{gate.queue_id}"
    # A gate's id is derived from the wire that opened it.
    cause = f"wire_{gate.gate_id[5:]}" if world.workspace.rules >= LINEAGE_RULES else ""
    return Decision([Draft(payload, where, world.tasks[gate.task_id].context_id, sender, causation_id=cause)])


def _open_gate(world: World, past: Past, gate_id: str, actor: Actor) -> tuple[Gate, str]:
    """Return a gate that the actor may decide, and the actor's name as a sender."""
    gate = world.gates.get(gate_id)
    if gate is None:
        closed = past.gate(gate_id)
        if closed is None:
            raise not_found("gate")
        raise Refused(409, "gate_closed", f"The gate is {closed.state} already.")
    sender = actor.sender(world)
    own = sender == gate.worker or (actor.agent_id and actor.agent_id == gate.agent_id)
    if own and (actor.agent_id or not gate.self_approval):
        raise _own_gate(gate, actor)
    if not _may_approve(world, gate, actor):
        raise Refused(403, "not_an_approver", "This key is neither an admin's nor one of the gate's approvers.")
    return gate, sender


def _own_gate(gate: Gate, actor: Actor) -> Refused:
    """Refuse to decide a gate of one's own work; the message says who can decide, and which policy would allow it."""
    others = "another admin key" + (f" or one of {', '.join(gate.approvers)}" if gate.approvers else "")
    detail = f"This key did the work, so {others} must decide."
    if not actor.agent_id:
        policy = f'PATCH /workspaces/{actor.workspace_id}/policy {{"selfApproval": true}}'
        detail += f" To allow it, for gates that open later: {policy}."
    return Refused(403, "own_gate", detail)


def _may_approve(world: World, gate: Gate, actor: Actor) -> bool:
    """True for admins, and for those the plan lists: a key, an agent, or the active holders of a role."""
    agent = world.agents.get(actor.agent_id)
    roles = agent.roles if agent is not None and agent.active else ()
    return actor.is_admin or not {actor.key_id, actor.agent_id, *roles}.isdisjoint(gate.approvers)


def publish(world: World, command: PublishDefinition, actor: Actor, now: int, ids: Ids) -> Decision:
    """Publish the next version of a definition."""
    last = world.definitions.get(command.definition_id)
    following = last.version + 1 if last is not None else 1
    if command.version != following:
        detail = f"Version {following} is the next to be published; a published version never changes."
        raise Refused(409, "version_published", detail)
    payload = DefinitionPublished(
        definition_id=command.definition_id,
        version=command.version,
        structure_ref=command.structure_ref,
        content_ref=command.content_ref,
    )
    where = f"workspace:{world.workspace.workspace_id}"
    return Decision([Draft(payload, where, where, actor.sender(world))])
