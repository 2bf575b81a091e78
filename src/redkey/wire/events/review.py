"""The payloads of `review.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class ReviewConcern(Payload, frozen=True, kw_only=True):
    """A reviewer's concern about work in progress."""

    TYPE: ClassVar[str] = "review.concern"
    KEYED: ClassVar[bool] = True

    attempt: int | None = None
    body: str | None = None
    by: str
    concern_ref: Ref
    idem: str | None = None
    message_id: str
    severity: str
    task_id: str | None = None

    def named(self) -> tuple[str | None, ...]:
        return (self.task_id,)
