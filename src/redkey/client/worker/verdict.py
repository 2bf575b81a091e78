"""Verdicts: how a handler's work ended, and how the server is told. A handler returns or raises one of these; anything
else that it returns is the output of a completion, and anything else that it raises is a failure."""

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
    """Return this in place of the bare output to say more about the work."""

    output: Any = None
    summary: str | None = None
    notes: str | None = None
    cost_usd: float | None = None
    semantic: Literal["pass", "fail", "skipped"] | None = None
    # How many tries it took until the work passed its verification; the server takes one for granted.
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
    """Raise this to fail the attempt; whether another follows is the task's retry policy, and `rejected` ends it."""

    def __init__(self, reason: str, *, kind: FailureKind = "error") -> None:
        super().__init__(reason)
        self.reason, self.kind = reason, kind

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        reason = self.reason[:_REASON_LIMIT] or "The handler gave no reason."
        return Claims.fail.build(None, claim_id, reason, kind=self.kind, claim_next=following)


class Block(Exception):
    """Raise this when something stands in the way that others can lift; the task waits, and they are told."""

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
    """Raise this to give the task back, unharmed, for others."""

    def report(self, claim_id: str, following: ClaimNext | None) -> Request[Any]:
        return Claims.release.build(None, claim_id)


Verdict = Done | Fail | Block | Release


def verdict_of(raised: Exception) -> Fail | Block | Release:
    """What an exception of a handler means."""
    if isinstance(raised, Fail | Block | Release):
        return raised
    kind: FailureKind = "timeout" if isinstance(raised, TimeoutError) else "error"
    return Fail(f"{type(raised).__name__}: {raised}", kind=kind)


def after_refusal(refused: ClientError, verdict: Verdict) -> Fail | None:
    """What to report when the server does not take a verdict; None when there is nothing left to say."""
    if isinstance(verdict, Fail):
        # Its words were refused, so these are ours: the wrong words must not keep the task from its next attempt.
        told = f"The handler failed; what it said was refused ({refused.code})."
        return Fail(told, kind=verdict.kind) if verdict.reason != told else None
    if isinstance(refused, CallMisused):
        return Fail(f"What the handler gave cannot be sent: {refused.message}")
    detail = refused.detail if isinstance(refused, ApiError) else refused.message
    return Fail(f"What the handler gave was refused ({refused.code}): {detail}", kind="verification")
