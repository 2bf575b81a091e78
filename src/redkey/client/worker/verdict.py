"""Verdicts: how a handler's work ended, and how to report it to the server.

A handler returns or raises one of these. Any other return value is the output of a completion, and any other exception
is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redkey.client.calls.claims import Claims
from redkey.client.request import Request
from redkey.errors import ApiError, CallMisused, ClientError
from redkey.shapes.claims import BlockerType, ClaimNext, FailureKind

_REASON_LIMIT = 8000


@dataclass(frozen=True, slots=True)
class Done:
    """Return this instead of the bare output to say more about the work."""

    output: Any = None
    summary: str | None = None
    notes: str | None = None
    cost_usd: float | None = None
    semantic: Literal["pass", "fail", "skipped"] | None = None
    # How many tries the work needed to pass its verification; the server assumes one.
    attempts: int | None = None

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        return Claims.complete.build(
            None,
            claim_id,
            output=self.output,
            summary=self.summary,
            notes=self.notes,
            cost_usd=self.cost_usd,
            semantic=self.semantic,
            attempts=self.attempts,
            claim_next=following,
        )


class Fail(Exception):
    """Raise this to fail the attempt. The task's retry policy decides on another attempt; `rejected` allows none."""

    def __init__(self, reason: str, *, kind: FailureKind = "error") -> None:
        super().__init__(reason)
        self.reason, self.kind = reason, kind

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        reason = self.reason[:_REASON_LIMIT] or "The handler gave no reason."
        return Claims.fail.build(None, claim_id, reason, kind=self.kind, claim_next=following)


class Block(Exception):
    """Raise this if the work cannot continue until a blocker is removed; the task waits, and others get a message."""

    def __init__(
        self,
        reason: str,
        blocker_type: BlockerType = "ambiguity",
        *,
        suggested_resolution: str | None = None,
        depends_on: Sequence[str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.blocker_type = reason, blocker_type
        self.suggested_resolution, self.depends_on = suggested_resolution, depends_on

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        return Claims.block.build(
            None,
            claim_id,
            self.reason[:_REASON_LIMIT],
            blocker_type=self.blocker_type,
            suggested_resolution=self.suggested_resolution,
            depends_on=self.depends_on,
        )


class Release(Exception):
    """Raise this to release the task, unchanged, for other agents."""

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        return Claims.release.build(None, claim_id)


Verdict = Done | Fail | Block | Release


def verdict_of(raised: Exception) -> Fail | Block | Release:
    """Turn an exception of a handler into a verdict."""
    if isinstance(raised, Fail | Block | Release):
        return raised
    kind: FailureKind = "timeout" if isinstance(raised, TimeoutError) else "error"
    return Fail(f"{type(raised).__name__}: {raised}", kind=kind)


def after_refusal(refused: ClientError, verdict: Verdict) -> Fail | None:
    """Return the verdict to report after the server refused one; None if nothing is left to report."""
    if isinstance(verdict, Fail):
        # The server refused the handler's text, so use our own: invalid text must not prevent the next attempt.
        reason = f"The handler failed, and the server refused its reason ({refused.code})."
        return Fail(reason, kind=verdict.kind) if verdict.reason != reason else None
    if isinstance(refused, CallMisused):
        return Fail(f"The handler's result cannot be sent: {refused.message}")
    detail = refused.detail if isinstance(refused, ApiError) else refused.message
    return Fail(f"The server refused the handler's result ({refused.code}): {detail}", kind="verification")
