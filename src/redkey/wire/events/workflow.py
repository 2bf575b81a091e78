"""The payloads of `workflow.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class WorkflowStarted(Payload, frozen=True, kw_only=True):
    """A plan runs."""

    TYPE: ClassVar[str] = "workflow.started"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    definition_id: str | None = None
    idem: str | None = None
    queue_id: str
    structure_ref: Ref
    version: int | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id, self.queue_id)


@final
class WorkflowPaused(Payload, frozen=True, kw_only=True):
    """Nothing more opens or is claimed."""

    TYPE: ClassVar[str] = "workflow.paused"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowResumed(Payload, frozen=True, kw_only=True):
    """The run goes on."""

    TYPE: ClassVar[str] = "workflow.resumed"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowCancelled(Payload, frozen=True, kw_only=True):
    """The run ends now."""

    TYPE: ClassVar[str] = "workflow.cancelled"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowCompleted(Payload, frozen=True, kw_only=True):
    """Every task and gate of the run is done."""

    TYPE: ClassVar[str] = "workflow.completed"

    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)


@final
class WorkflowFailed(Payload, frozen=True, kw_only=True):
    """The run cannot be completed."""

    TYPE: ClassVar[str] = "workflow.failed"

    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.workflow_id,)
