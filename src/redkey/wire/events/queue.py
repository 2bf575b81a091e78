"""The payloads of `queue.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload, WirePart


class QueueSettings(WirePart, frozen=True, kw_only=True):
    """The `settings` of queue events."""

    allow_secrets: bool | None = None
    lease_losses: int | None = None
    lease_seconds: int | None = None
    max_attempts: int | None = None
    max_live_claims: int | None = None
    paused: bool | None = None
    priority: str | None = None


@final
class QueueCreated(Payload, frozen=True, kw_only=True):
    """A queue exists."""

    TYPE: ClassVar[str] = "queue.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    queue_id: str | None = None
    settings: QueueSettings

    def named(self) -> tuple[str | None, ...]:
        return (self.queue_id,)


@final
class QueueUpdated(Payload, frozen=True, kw_only=True):
    """A queue's settings changed."""

    TYPE: ClassVar[str] = "queue.updated"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    queue_id: str | None = None
    settings: QueueSettings

    def named(self) -> tuple[str | None, ...]:
        return (self.queue_id,)
