"""The structure of a plan: what the workflow reducer decides by, and nothing that anybody wrote as text.

It is stored by hash and pinned, so a replay never needs what may be erased. Titles, inputs and criteria stay in
the plan's document.
"""

from __future__ import annotations

from typing import Any

import msgspec


class GatePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who may approve, until when, and what happens when nobody does. No approvers: any admin but the worker."""

    approvers: tuple[str, ...] = ()
    deadline_seconds: int = 0
    on_deadline: str = "hold"


class PlanTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task of a plan, as the reducer needs it; dependencies are places in the list of tasks."""

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
    """A plan's skeleton. `dependents` is worked out, never stored."""

    max_parallel_tasks: int
    tasks: tuple[PlanTask, ...]

    def dependents(self) -> list[list[int]]:
        """For each task, those that wait for it."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for index, task in enumerate(self.tasks):
            for upstream in task.depends_on:
                found[upstream].append(index)
        return found


def write_structure(structure: Structure) -> dict[str, Any]:
    """The structure as the JSON that is pinned."""
    value: dict[str, Any] = msgspec.to_builtins(structure)
    return value


def read_structure(value: dict[str, Any]) -> Structure:
    """The structure of pinned JSON."""
    return msgspec.convert(value, Structure)
