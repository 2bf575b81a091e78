"""The payloads of `message.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class MessageAdded(Payload, frozen=True, kw_only=True):
    """Somebody said something about the task."""

    TYPE: ClassVar[str] = "message.added"
    KEYED: ClassVar[bool] = True

    attempt: int | None = None
    body: str | None = None
    idem: str | None = None
    message_id: str
    parts_ref: Ref
    role: str
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)
