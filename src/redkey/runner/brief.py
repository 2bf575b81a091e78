"""The brief of a task: the Brief Wire it came with, or one made from what the task says of itself."""

from __future__ import annotations

import msgspec

from redkey.client import Assignment
from redkey.errors import Finding, WireRefused
from redkey.wire.legacy import Brief, Env, OutputContract, read_wire_1_0


def brief_of(task: Assignment, workspace_id: str) -> Brief:
    """The task's brief; WireRefused when it has one that is of another version, no brief, or invalid."""
    if task.brief is None:
        return _made(task, workspace_id)
    wire = read_wire_1_0(task.brief)
    if not isinstance(wire.payload, Brief):
        raise WireRefused([Finding("brief_type", "/type", "a task's brief is a wire of type brief")])
    # A server of an earlier version does not fill it in.
    env = msgspec.structs.replace(wire.payload.env, task_id=task.task_id)
    return msgspec.structs.replace(wire.payload, env=env)


def _made(task: Assignment, workspace_id: str) -> Brief:
    """A brief from a task without one: the title is the goal, the criteria of completion are those of acceptance.

    The description is no context of a brief, which is short background: the prompt shows it whole.
    """
    return Brief(
        goal=task.title or task.plan_task_id or task.task_id,
        context=None,
        constraints=(),
        acceptance_criteria=task.completion_criteria,
        output_contract=_contract(task),
        escalation_triggers=(),
        env=Env(client_id=workspace_id, task_id=task.task_id, project_id=_project(task)),
    )


def _project(task: Assignment) -> str | None:
    kind, _, project_id = task.context_id.partition(":")
    return project_id if kind == "project" else None


def _contract(task: Assignment) -> OutputContract:
    asked = task.output_contract
    if asked is None:
        return OutputContract(
            type="file" if task.outputs else "message", output_ref_required=bool(task.outputs), min_length=0
        )
    return OutputContract(
        type=asked["type"],
        output_ref_required=asked.get("outputRefRequired", bool(task.outputs)),
        min_length=asked.get("minLength", 0),
        schema_ref=asked.get("schemaRef"),
        evaluate=asked.get("evaluate"),
    )
