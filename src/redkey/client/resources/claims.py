"""Claims: how an attempt to get a task went, and everything that a holder does until its claim ends.

`rk.tasks.claim` and `rk.queues.claim_next` make claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.calls import claims as calls
from redkey.client.operation import Listing, Mode
from redkey.client.request import Request, at
from redkey.client.resources.ledger import Event, Order, events_at
from redkey.shapes.claims import (
    ArtifactAdded,
    Assignment,
    BatchedCompletion,
    BlockerType,
    ClaimChanged,
    Claimed,
    ClaimEnded,
    ClaimNext,
    ClaimNextOutcome,
    ClaimOutcome,
    ClaimResult,
    ClaimResults,
    Completion,
    FailureKind,
    Heartbeat,
    Missed,
    NoTasks,
    Readiness,
    Rejected,
    Upstream,
)
from redkey.shapes.fields import Page

__all__ = [
    "ArtifactAdded",
    "Assignment",
    "BatchedCompletion",
    "BlockerType",
    "ClaimChanged",
    "ClaimEnded",
    "ClaimNext",
    "ClaimNextOutcome",
    "ClaimOutcome",
    "ClaimResult",
    "ClaimResults",
    "Claimed",
    "Claims",
    "Completion",
    "FailureKind",
    "Heartbeat",
    "Missed",
    "NoTasks",
    "Readiness",
    "Rejected",
    "Upstream",
]


class Claims(calls.Claims[Mode]):
    """What the holder of a task may do with it; every call names its claim, and only the current one may write."""

    @Listing
    def events(
        self,
        claim_id: str,
        *,
        type: str | Sequence[str] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What happened to a claim."""
        return events_at(at("claims", claim_id, "events"), type=type, order=order, limit=limit, after=after)
