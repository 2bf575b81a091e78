"""What a command needs of the past, told from the command and the world alone: read it, then decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redkey.commands import claims, registry, tasks, workflows
from redkey.commands.past import Wanted
from redkey.reducers.world import World


def wanted(world: World, command: Any) -> Wanted | None:
    """What must be read before the command is decided; None when the world is enough."""
    needs = _NEEDS.get(type(command))
    return needs(world, command) if needs is not None else None


def _claimed_task(world: World, command: claims.ClaimTask) -> Wanted:
    task_id, agent_id = command.task_id, command.agent_id
    return Wanted(
        tasks=() if task_id in world.tasks else (task_id,),
        told=None if agent_id in world.misses.get(task_id, ()) else (task_id, agent_id),
    )


def _held(world: World, command: Any) -> Wanted | None:
    return None if command.claim_id in world.claims else Wanted(claim_id=command.claim_id)


def _awaited(world: World, command: tasks.CreateTask) -> Wanted | None:
    gone = tuple(key for key in command.waits_for if key not in world.tasks)
    return Wanted(tasks=gone) if gone else None


def _task(world: World, command: Any) -> Wanted | None:
    return None if command.task_id in world.tasks else Wanted(tasks=(command.task_id,))


def _retried(world: World, command: tasks.RetryTask) -> Wanted:
    task = world.tasks.get(command.task_id)
    if task is None:
        return Wanted(tasks=(command.task_id,), upstream=True)
    return Wanted(tasks=tuple(key for key in task.waits_for if key not in world.tasks))


def _workflow(world: World, command: Any) -> Wanted | None:
    return None if command.workflow_id in world.runs else Wanted(workflow_id=command.workflow_id)


def _gate(world: World, command: Any) -> Wanted | None:
    return None if command.gate_id in world.gates else Wanted(gate_id=command.gate_id)


def _message(world: World, command: Any) -> Wanted | None:
    return None if command.message_id in world.messages else Wanted(message_id=command.message_id)


_NEEDS: Mapping[type, Callable[[World, Any], Wanted | None]] = {
    claims.ClaimTask: _claimed_task,
    claims.StartClaim: _held,
    claims.ReleaseClaim: _held,
    claims.HeartbeatClaim: _held,
    claims.BlockClaim: _held,
    claims.AddArtifact: _held,
    claims.PlanClaim: _held,
    claims.CompleteClaim: _held,
    claims.FailClaim: _held,
    tasks.CreateTask: _awaited,
    tasks.CancelTask: _task,
    tasks.RetryTask: _retried,
    tasks.UnblockTask: _task,
    tasks.AddMessage: _task,
    tasks.RaiseConcern: _task,
    workflows.PauseWorkflow: _workflow,
    workflows.ResumeWorkflow: _workflow,
    workflows.CancelWorkflow: _workflow,
    workflows.ApproveGate: _gate,
    workflows.RejectGate: _gate,
    registry.SendMessage: _message,
    registry.ReadMessage: _message,
}
