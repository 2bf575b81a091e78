"""A plan as people write it: the fields of a valid plan.json. `validate` checks it before it is read, `structure` holds
what the reducer needs of it."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire.names import role_id


class Retry(msgspec.Struct, frozen=True, rename="camel"):
    """How many attempts a task has in all, and what happens when one fails."""

    max_attempts: int
    on_failure: str


class Policies(msgspec.Struct, frozen=True, rename="camel"):
    """The defaults of every task that does not override them."""

    max_parallel_tasks: int
    retry: Retry
    default_lease_seconds: int = 0


class PlanRole(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A role that the plan declares; a run creates it in a workspace that does not have it."""

    name: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()


class Output(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An artifact that a task produces, and what is expected of it."""

    name: str
    description: str = ""
    media_type: str = ""


class Gate(msgspec.Struct, frozen=True, rename="camel"):
    """Who may approve besides the admins, until when, and what happens if nobody decides by then."""

    approvers: tuple[str, ...] = ()
    deadline_seconds: int = 0
    on_deadline: str = "hold"


class Task(msgspec.Struct, frozen=True, rename="camel"):
    """One task of a plan."""

    id: str
    title: str
    role: str
    completion_criteria: tuple[str, ...]
    description: str = ""
    required_capabilities: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    input: dict[str, Any] | None = None
    expected_inputs: tuple[str, ...] = ()
    outputs: tuple[str | Output, ...] = ()
    output_contract: dict[str, Any] | None = None
    retry: Retry | None = None
    lease_seconds: int = 0
    deadline_seconds: int = 0
    approval_gate: bool | Gate = False
    priority: str = "normal"

    def output_names(self) -> tuple[str, ...]:
        return tuple(output if isinstance(output, str) else output.name for output in self.outputs)


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    """A valid plan."""

    version: str
    name: str
    roles: dict[str, PlanRole]
    tasks: tuple[Task, ...]
    policies: Policies
    description: str = ""

    def roles_by_id(self) -> dict[str, PlanRole]:
        """Return the plan's roles by their ids in the workspace."""
        return {role_id(name): role for name, role in self.roles.items()}


def read_plan(value: dict[str, Any]) -> Plan:
    """Read the plan from JSON that has passed `validate`."""
    return msgspec.convert(value, Plan)
