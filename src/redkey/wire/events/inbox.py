"""The payloads of `inbox.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class InboxSent(Payload, frozen=True, kw_only=True):
    """A message for an agent, a role or a human."""

    TYPE: ClassVar[str] = "inbox.sent"
    KEYED: ClassVar[bool] = True

    action_required: bool
    body: str | None = None
    body_ref: Ref
    idem: str | None = None
    message_id: str
    message_type: str
    priority: int
    ref_task_id: str | None = None
    to: str

    def named(self) -> tuple[str | None, ...]:
        return (self.ref_task_id,)


@final
class InboxRead(Payload, frozen=True, kw_only=True):
    """The message was read."""

    TYPE: ClassVar[str] = "inbox.read"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    message_id: str
