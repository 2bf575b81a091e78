"""The structure of a plan: what the workflow reducer needs to decide, without any free text.

It is stored by hash and pinned, so a replay never needs content that may have been erased. Titles, inputs and criteria
stay in the plan's document. The same plan always has the same structure.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from redkey.errors import RedKeyError
from redkey.plans.model import Gate, Plan, Task
from redkey.wire.names import role_id


class StructureRefused(RedKeyError):
    """The pinned JSON is not the structure of a plan."""

    code = "structure_invalid"


class GatePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who may approve besides the admins (never the worker), until when, and what happens if nobody decides by then."""

    approvers: tuple[str, ...] = ()
    deadline_seconds: int = 0
    on_deadline: str = "hold"


class PlanTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task of a plan, as the reducer needs it; dependencies are indexes of the list of tasks."""

    id: str
    role: str
    capabilities: tuple[str, ...] = ()
    depends_on: tuple[int, ...] = ()
    outputs: tuple[str, ...] = ()
    priority: str = "normal"
    lease_seconds: int = 0
    deadline_seconds: int = 0
    max_attempts: int = 1
    on_failure: str = "fail"
    gate: GatePolicy | None = None


class Structure(msgspec.Struct, frozen=True):
    """A plan without its texts."""

    max_parallel_tasks: int
    tasks: tuple[PlanTask, ...]
    structure: Literal["1.0"] = "1.0"


def to_structure(plan: Plan) -> Structure:
    """Build the structure of a valid plan."""
    places = {task.id: place for place, task in enumerate(plan.tasks)}
    return Structure(plan.policies.max_parallel_tasks, tuple(_task(plan, task, places) for task in plan.tasks))


def _task(plan: Plan, task: Task, places: dict[str, int]) -> PlanTask:
    retry = task.retry or plan.policies.retry
    return PlanTask(
        id=task.id,
        role=role_id(task.role),
        capabilities=task.required_capabilities,
        depends_on=tuple(places[key] for key in task.depends_on),
        outputs=task.output_names(),
        priority=task.priority,
        lease_seconds=task.lease_seconds or plan.policies.default_lease_seconds,
        deadline_seconds=task.deadline_seconds,
        max_attempts=retry.max_attempts,
        on_failure=retry.on_failure,
        gate=gate_policy(task.approval_gate),
    )


def gate_policy(gate: bool | Gate | None) -> GatePolicy | None:
    """Read an approval gate for the reducer; any name of a role becomes its role id."""
    if not isinstance(gate, Gate):
        return GatePolicy() if gate else None
    return GatePolicy(tuple(_approver(name) for name in gate.approvers), gate.deadline_seconds, gate.on_deadline)


def _approver(name: str) -> str:
    return name if name.startswith(("agt_", "key_")) else role_id(name)


def write_structure(structure: Structure) -> dict[str, Any]:
    """Return the structure as the JSON that is pinned."""
    value: dict[str, Any] = msgspec.to_builtins(structure)
    return value


def read_structure(value: dict[str, Any]) -> Structure:
    """Read the structure from pinned JSON; raise StructureRefused if a reducer could not use it."""
    try:
        structure = msgspec.convert(value, Structure)
    except msgspec.ValidationError as cause:
        raise StructureRefused(str(cause)) from cause
    count = len(structure.tasks)
    if len({task.id for task in structure.tasks}) != count:
        raise StructureRefused("two tasks have the same id")
    if any(not 0 <= above < count for task in structure.tasks for above in task.depends_on):
        raise StructureRefused("a task depends on a task that does not exist")
    return structure
