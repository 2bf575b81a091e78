"""A plan as people write it: plan.json of a valid plan, field by field. What is checked before is `validate`'s, what
the reducer needs of it is `structure`'s."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire.names import role_id


class Retry(msgspec.Struct, frozen=True, rename="camel"):
    """How many attempts a task has in all, and what a failure means."""

    max_attempts: int
    on_failure: str


class Policies(msgspec.Struct, frozen=True, rename="camel"):
    """What holds for every task that does not say otherwise."""

    max_parallel_tasks: int
    retry: Retry
    default_lease_seconds: int = 0


class PlanRole(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A role that the plan brings; a workspace that does not have it gets it from here."""

    name: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()


class Output(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An artifact that a task leaves, and what is expected of it."""

    name: str
    description: str = ""
    media_type: str = ""


class Gate(msgspec.Struct, frozen=True, rename="camel"):
    """Who may approve beside the admins, until when, and what happens when nobody does."""

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
    """A plan that is valid."""

    version: str
    name: str
    roles: dict[str, PlanRole]
    tasks: tuple[Task, ...]
    policies: Policies
    description: str = ""

    def roles_by_id(self) -> dict[str, PlanRole]:
        """The plan's roles under the ids that the workspace knows them by."""
        return {role_id(name): role for name, role in self.roles.items()}


def read_plan(value: dict[str, Any]) -> Plan:
    """The plan of JSON that is valid."""
    return msgspec.convert(value, Plan)
