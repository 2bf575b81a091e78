"""An outline: the readable parts of a plan that may be wrong elsewhere, so that all errors can be reported at once.

Parts of the wrong type are left out; the schema (`shape`) reports them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire.names import role_id


class TaskOutline(msgspec.Struct, gc=False):
    """The readable parts of one task; a missing part, or a missing entry of a list, is empty."""

    place: int
    id: str
    title: str
    role: str
    depends_on: list[str]
    outputs: list[str]
    expected_inputs: list[str]
    criteria: list[str]
    approvers: list[str]
    gated: bool
    max_attempts: int

    @property
    def at(self) -> str:
        """Return the JSON pointer of the task."""
        return f"/tasks/{self.place}"

    @property
    def called(self) -> str:
        """Return the name of the task for messages."""
        return self.id or f"the task at {self.at}"


class Outline(msgspec.Struct):
    """The readable parts of a plan."""

    tasks: list[TaskOutline]
    # Role id -> the names that the plan writes it with.
    roles: dict[str, list[str]]
    # Task id -> the first task that has it.
    places: dict[str, int]
    # For each task, the indexes of the tasks it waits for, if these are known.
    upstream: list[list[int]]


def outline(plan: Any) -> Outline:
    """Read the outline of any JSON value."""
    whole = _object(plan)
    attempts = _attempts(_object(whole.get("policies")).get("retry"), 0)
    tasks = [_task(place, _object(task), attempts) for place, task in enumerate(_list(whole.get("tasks")))]
    roles: dict[str, list[str]] = {}
    for name in _object(whole.get("roles")):
        roles.setdefault(role_id(name), []).append(name)
    places: dict[str, int] = {}
    for task in tasks:
        if task.id:
            places.setdefault(task.id, task.place)
    upstream = [[places[key] for key in task.depends_on if key in places] for task in tasks]
    return Outline(tasks, roles, places, upstream)


def _task(place: int, task: dict[str, Any], attempts: int) -> TaskOutline:
    gate = task.get("approvalGate")
    return TaskOutline(
        place=place,
        id=_text(task.get("id")),
        title=_text(task.get("title")),
        role=_text(task.get("role")),
        depends_on=_texts(task.get("dependsOn")),
        outputs=[_name(item) for item in _list(task.get("outputs"))],
        expected_inputs=_texts(task.get("expectedInputs")),
        criteria=_texts(task.get("completionCriteria")),
        approvers=_texts(gate.get("approvers")) if type(gate) is dict else [],
        gated=gate is True or isinstance(gate, dict),
        max_attempts=_attempts(task.get("retry"), attempts),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _text(value: Any) -> str:
    return value if type(value) is str else ""


def _texts(value: Any) -> list[str]:
    """Return the texts of a list; most lists hold nothing else."""
    found = _list(value)
    return found if all(type(item) is str for item in found) else [_text(item) for item in found]


def _name(output: Any) -> str:
    """Return the name of an output, which is a text or a field of an object."""
    return _text(output.get("name")) if type(output) is dict else _text(output)


def _attempts(retry: Any, otherwise: int) -> int:
    value = _object(retry).get("maxAttempts")
    return value if type(value) is int else otherwise
