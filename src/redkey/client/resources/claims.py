"""Claims: how an attempt to get a task went, and everything that a holder does until its claim ends.

`rk.tasks.claim` and `rk.queues.claim_next` make claims.
"""

from __future__ import annotations

from redkey.client.calls.claims import Claims
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
