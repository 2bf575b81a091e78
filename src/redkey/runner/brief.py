"""The brief of a task: its own Brief Wire, or one built from the fields of the task."""

from __future__ import annotations

import msgspec

from redkey.client import Assignment
from redkey.errors import Finding, WireRefused
from redkey.wire.legacy import Brief, Env, OutputContract, read_wire_1_0


def brief_of(task: Assignment, workspace_id: str) -> Brief:
    """Return the task's brief; WireRefused if it is of another version or type, or invalid."""
    if task.brief is None:
        return _made(task, workspace_id)
    wire = read_wire_1_0(task.brief)
    if not isinstance(wire.payload, Brief):
        raise WireRefused([Finding("brief_type", "/type", "a task's brief is a wire of type brief")])
    # Older servers do not fill this in.
    env = msgspec.structs.replace(wire.payload.env, task_id=task.task_id)
    return msgspec.structs.replace(wire.payload, env=env)


def _made(task: Assignment, workspace_id: str) -> Brief:
    """Build a brief from a task: title becomes goal, completion criteria become acceptance criteria.

    The description is not put into the brief's context, which must be short: the prompt shows it whole.
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
