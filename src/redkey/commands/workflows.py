"""Workflows and gates: start, pause, resume, cancel; approve and reject; publish a definition."""

from __future__ import annotations

from typing import Any, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.registry import CreateRole, create_role
from redkey.commands.tasks import check_credits
from redkey.reducers.entities import Gate
from redkey.reducers.run import Run
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
    """Start a run of a validated plan: its structure is pinned, its text is content. Creates the missing roles."""

    workflow_id: str
    queue_id: str
    structure: dict[str, Any]
    structure_ref: Ref
    content_ref: Ref
    roles: tuple[CreateRole, ...] = ()
    definition_id: str = ""
    version: int = 0


@final
class PauseWorkflow(msgspec.Struct, frozen=True):
    """Open no further tasks of a run until it is resumed."""

    workflow_id: str


@final
class ResumeWorkflow(msgspec.Struct, frozen=True):
    """Let a paused run open tasks again."""

    workflow_id: str


@final
class CancelWorkflow(msgspec.Struct, frozen=True):
    """End a run and cancel its open tasks."""

    workflow_id: str


@final
class ApproveGate(msgspec.Struct, frozen=True):
    """Approve the completed task that a gate holds back."""

    gate_id: str
    note_ref: Ref | None = None


@final
class RejectGate(msgspec.Struct, frozen=True):
    """Reject the completed task that a gate holds back."""

    gate_id: str
    note_ref: Ref | None = None


@final
class PublishDefinition(msgspec.Struct, frozen=True):
    """Publish the draft as a version. Refused if the draft is no longer at this revision."""

    definition_id: str
    version: int
    structure_ref: Ref
    content_ref: Ref
    revision: int = 0


def start(world: World, command: StartWorkflow, actor: Actor, now: int, ids: Ids) -> Decision:
    if command.queue_id not in world.queues:
        raise not_found("queue")
    check_credits(world)
    payload = WorkflowStarted(
        queue_id=command.queue_id,
        structure_ref=command.structure_ref,
        content_ref=command.content_ref,
        definition_id=command.definition_id or None,
        version=command.version if command.definition_id else None,
    )
    where = f"workflow:{command.workflow_id}"
    run = Draft(payload, where, where, actor.sender(world), structure=command.structure)
    missing = [role for role in command.roles if role.role_id not in world.roles]
    made = [draft for role in missing for draft in create_role(world, role, actor, now, ids).drafts]
    # The run stands first, so that it carries the request; nothing opens before the roles are there.
    return Decision([run, *made])


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
    if _live(world, past, command.workflow_id).workflow.state == "paused":
        return Decision(answer={"unchanged": True})
    return _change(world, command.workflow_id, WorkflowPaused(), actor)


def resume(world: World, command: ResumeWorkflow, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    if _live(world, past, command.workflow_id).workflow.state == "running":
        return Decision(answer={"unchanged": True})
    return _change(world, command.workflow_id, WorkflowResumed(), actor)


def cancel(world: World, command: CancelWorkflow, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    _live(world, past, command.workflow_id)
    return _change(world, command.workflow_id, WorkflowCancelled(), actor)


def approve(world: World, command: ApproveGate, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    return _decide_gate(world, command, actor, past, GateApproved)


def reject(world: World, command: RejectGate, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
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
    return Decision([Draft(payload, where, world.tasks[gate.task_id].context_id, sender)])


def _open_gate(world: World, past: Past, gate_id: str, actor: Actor) -> tuple[Gate, str]:
    """A gate that the actor may decide, and how wires name the actor."""
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
    """Say who else can decide, and what would let this key."""
    others = "another admin key" + (f" or one of {', '.join(gate.approvers)}" if gate.approvers else "")
    detail = f"This key did the work, so {others} must decide."
    if not actor.agent_id:
        policy = f'PATCH /workspaces/{actor.workspace_id}/policy {{"selfApproval": true}}'
        detail += f" To let one person do both, in gates that open from then on: {policy}."
    return Refused(403, "own_gate", detail)


def _may_approve(world: World, gate: Gate, actor: Actor) -> bool:
    """Admins, and those the plan lists: a key, an agent, or the active holders of a role."""
    agent = world.agents.get(actor.agent_id)
    roles = agent.roles if agent is not None and agent.active else ()
    return actor.is_admin or not {actor.key_id, actor.agent_id, *roles}.isdisjoint(gate.approvers)


def publish(world: World, command: PublishDefinition, actor: Actor, now: int, ids: Ids) -> Decision:
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
