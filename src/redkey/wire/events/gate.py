"""The payloads of `gate.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class GateOpened(Payload, frozen=True, kw_only=True):
    """A completed attempt waits for approval."""

    TYPE: ClassVar[str] = "gate.opened"
    KEYED: ClassVar[bool] = True

    attempt: int
    body: str | None = None
    gate_id: str
    idem: str | None = None
    task_id: str
    workflow_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id, self.workflow_id)


@final
class GateApproved(Payload, frozen=True, kw_only=True):
    """Somebody other than the worker approved."""

    TYPE: ClassVar[str] = "gate.approved"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    by: str
    gate_id: str
    idem: str | None = None
    note_ref: Ref | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)


@final
class GateRejected(Payload, frozen=True, kw_only=True):
    """Rejected: the task is tried again with the note."""

    TYPE: ClassVar[str] = "gate.rejected"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    by: str
    gate_id: str
    idem: str | None = None
    note_ref: Ref | None = None
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)
