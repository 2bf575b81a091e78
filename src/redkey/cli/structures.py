"""The structures in a ledger dump, so that a replay knows the required outputs of tasks.

`redkey ledger replay` folds a dump with all its decisions; this module only looks up what the task reducer asks for.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from redkey.errors import Finding, WireRefused
from redkey.plans.structure import StructureRefused, read_structure
from redkey.wire.canonical import canonical
from redkey.wire.envelope import AnyWire
from redkey.wire.events import TaskCreated, WorkflowStarted
from redkey.wire.ids import parse_stream


class Structures:
    """Structures by hash, and the plan of each started workflow."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._plans: dict[str, str] = {}

    def take(self, line: dict[str, Any]) -> None:
        """Keep the structure in a dump's line; WireRefused if it does not match its hash."""
        structure, name = line["structure"], line["sha256"]
        if not isinstance(structure, dict) or sha256(canonical(structure)).hexdigest() != name:
            raise WireRefused([Finding("structure_mismatch", "/sha256", "this is not the hash of the structure")])
        self._known[name] = structure

    def note(self, wire: AnyWire) -> None:
        """Record the plan of a workflow."""
        if isinstance(wire.payload, WorkflowStarted):
            self._plans[parse_stream(wire.stream.stream_id).subject] = wire.payload.structure_ref.sha256

    def outputs(self, payload: TaskCreated) -> tuple[str, ...] | None:
        """Return the required outputs of a task.created that names a structure; None if the structure is unknown."""
        if payload.structure_ref is not None:
            needs = self._known.get(payload.structure_ref.sha256)
            return None if needs is None else _names(needs.get("outputs", ()))
        plan = self._known.get(self._plans.get(payload.workflow_id or "", ""))
        if plan is None:
            return None
        try:
            tasks = {task.id: task.outputs for task in read_structure(plan).tasks}
        except StructureRefused:
            return None
        return tasks.get(payload.plan_task or "")


def _names(value: Any) -> tuple[str, ...] | None:
    is_list = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return tuple(value) if is_list else None
