"""The work that comes with a claim, typed as far as a runner reads it; what it does not know it does not refuse."""

from __future__ import annotations

from typing import Any

import msgspec


class Upstream(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An artifact of a task that this one depends on."""

    name: str
    artifact_id: str
    task_id: str
    sha256: str
    bytes: int
    media_type: str = ""
    uri: str = ""
    erased: bool = False


class Assignment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt at a task, as the claim's reply tells it."""

    task_id: str
    queue_id: str
    attempt: int = 1
    workflow_id: str = ""
    plan_task_id: str = ""
    context_id: str = ""
    title: str = ""
    description: str = ""
    input: Any = None
    brief: dict[str, Any] | None = None
    completion_criteria: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    output_contract: dict[str, Any] | None = None
    upstream: tuple[Upstream, ...] = ()
    # What the tasks before this one left for the next, one text for each.
    prior_context: tuple[str, ...] = ()
    workflow_input: Any = None
    # What an approver said who sent the last attempt back.
    note: str = ""


def read_assignment(value: Any) -> Assignment:
    """The assignment in the JSON of a claim or of a task."""
    return msgspec.convert(value, Assignment)
