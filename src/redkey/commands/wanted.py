"""What a command needs to know of the past, computed from the command and the world: read it, then decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redkey.commands import claims, registry, tasks, workflows
from redkey.commands.command import Command
from redkey.commands.past import Wanted
from redkey.reducers.world import World

C = TypeVar("C", bound=Command)
_OnTask = tasks.CancelTask | tasks.UnblockTask | tasks.AddMessage | tasks.RaiseConcern
_OnWorkflow = workflows.PauseWorkflow | workflows.ResumeWorkflow | workflows.CancelWorkflow


def wanted(world: World, command: Command) -> Wanted | None:
    """What must be read before the command is decided; None when the world is enough."""
    needs = _NEEDS.get(type(command))
    return needs(world, command) if needs is not None else None


def _claimed_task(world: World, command: claims.ClaimTask) -> Wanted:
    task_id, agent_id = command.task_id, command.agent_id
    return Wanted(
        tasks=() if task_id in world.tasks else (task_id,),
        last_miss=None if agent_id in world.misses.get(task_id, ()) else (task_id, agent_id),
    )


def _held(world: World, command: claims.HolderCommand) -> Wanted | None:
    return None if command.claim_id in world.claims else Wanted(claim_id=command.claim_id)


def _replacing(world: World, command: claims.AddArtifact | claims.CompleteClaim) -> Wanted | None:
    added = (command,) if isinstance(command, claims.AddArtifact) else command.artifacts
    replaced = tuple(artifact.supersedes for artifact in added if artifact.supersedes)
    held = _held(world, command)
    if not replaced:
        return held
    return Wanted(claim_id=held.claim_id if held is not None else "", artifacts=replaced)


def _awaited(world: World, command: tasks.CreateTask) -> Wanted | None:
    absent = tuple(key for key in command.waits_for if key not in world.tasks)
    return Wanted(tasks=absent) if absent else None


def _task(world: World, command: _OnTask) -> Wanted | None:
    return None if command.task_id in world.tasks else Wanted(tasks=(command.task_id,))


def _retried(world: World, command: tasks.RetryTask) -> Wanted:
    task = world.tasks.get(command.task_id)
    if task is None:
        return Wanted(tasks=(command.task_id,), upstream=True)
    return Wanted(tasks=tuple(key for key in task.waits_for if key not in world.tasks))


def _workflow(world: World, command: _OnWorkflow) -> Wanted | None:
    return None if command.workflow_id in world.runs else Wanted(workflow_id=command.workflow_id)


def _gate(world: World, command: workflows.ApproveGate | workflows.RejectGate) -> Wanted | None:
    return None if command.gate_id in world.gates else Wanted(gate_id=command.gate_id)


def _message(world: World, command: registry.SendMessage | registry.ReadMessage) -> Wanted | None:
    return None if command.message_id in world.messages else Wanted(message_id=command.message_id)


_Need = Callable[[World, Any], Wanted | None]


def _of(kind: type[C], need: Callable[[World, C], Wanted | None]) -> tuple[type, _Need]:
    """Pair a need with its command type; the type checker checks that it accepts commands of that type."""
    return kind, need


_NEEDS: Mapping[type, _Need] = dict(
    [
        _of(claims.ClaimTask, _claimed_task),
        _of(claims.StartClaim, _held),
        _of(claims.ReleaseClaim, _held),
        _of(claims.HeartbeatClaim, _held),
        _of(claims.BlockClaim, _held),
        _of(claims.AddArtifact, _replacing),
        _of(claims.PlanClaim, _held),
        _of(claims.ReportUsage, _held),
        _of(claims.ReportProgress, _held),
        _of(claims.CompleteClaim, _replacing),
        _of(claims.FailClaim, _held),
        _of(tasks.CreateTask, _awaited),
        _of(tasks.CancelTask, _task),
        _of(tasks.RetryTask, _retried),
        _of(tasks.UnblockTask, _task),
        _of(tasks.AddMessage, _task),
        _of(tasks.RaiseConcern, _task),
        _of(workflows.PauseWorkflow, _workflow),
        _of(workflows.ResumeWorkflow, _workflow),
        _of(workflows.CancelWorkflow, _workflow),
        _of(workflows.ApproveGate, _gate),
        _of(workflows.RejectGate, _gate),
        _of(registry.SendMessage, _message),
        _of(registry.ReadMessage, _message),
    ]
)
