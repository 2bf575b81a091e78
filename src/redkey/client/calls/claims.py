"""Claims: how agents get tasks, and everything that a holder does until its claim ends.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, as_object, at, beat, get, post
from redkey.shapes.claims import (
    ArtifactAdded,
    BatchedCompletion,
    ClaimChanged,
    ClaimEnded,
    ClaimNext,
    ClaimResults,
    ClaimSpending,
    FailureKind,
    Heartbeat,
    ModelUsage,
    NewArtifact,
    ProgressReported,
    Readiness,
)
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import BlockerType, Page


class Claims(Resource[Mode]):
    """Claims: how agents get tasks, and everything that a holder does until its claim ends."""

    @Operation
    def complete_many(self, completions: Sequence[BatchedCompletion | Mapping[str, Any]]) -> Request[ClaimResults]:
        """Complete up to 500 claims, each with its own result."""
        return post("/claims/complete", ClaimResults, claims=[as_object(one) for one in completions])

    @Operation
    def start(self, claim_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[ClaimChanged]:
        """Report that the work has started."""
        return post(at("claims", claim_id, "start"), ClaimChanged, extensions=extensions)

    @Operation
    def release(self, claim_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[ClaimChanged]:
        """Release a task unfinished: others may claim it at once."""
        return post(at("claims", claim_id, "release"), ClaimChanged, extensions=extensions)

    @Operation
    def heartbeat(
        self, claim_id: str, *, idle_seconds: int | None = None, extensions: Mapping[str, Any] | None = None
    ) -> Request[Heartbeat]:
        """Extend the lease, and learn whether the claim still holds its task."""
        return beat(at("claims", claim_id, "heartbeat"), Heartbeat, idle_seconds=idle_seconds, extensions=extensions)

    @Operation
    def block(
        self,
        claim_id: str,
        reason: str,
        *,
        blocker_type: BlockerType,
        suggested_resolution: str | None = None,
        depends_on: Sequence[str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimChanged]:
        """Report that the work is blocked. Those who can resolve it get a message."""
        return post(
            at("claims", claim_id, "block"),
            ClaimChanged,
            reason=reason,
            blocker_type=blocker_type,
            suggested_resolution=suggested_resolution,
            depends_on=depends_on,
            extensions=extensions,
        )

    @Operation
    def add_artifact(
        self,
        claim_id: str,
        name: str,
        *,
        content: Any = UNSET,
        content_base64: str | None = None,
        uri: str | None = None,
        sha256: str | None = None,
        bytes: int | None = None,
        media_type: str | None = None,
        readiness: Readiness | None = None,
        artifact_id: str | None = None,
        derived_from: Sequence[str] | None = None,
        supersedes: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ArtifactAdded]:
        """Add an artifact: inline, as uploaded content, or elsewhere by URI and hash."""
        return post(
            at("claims", claim_id, "artifacts"),
            ArtifactAdded,
            name=name,
            content=content,
            content_base64=content_base64,
            uri=uri,
            sha256=sha256,
            bytes=bytes,
            media_type=media_type,
            readiness=readiness,
            artifact_id=artifact_id,
            derived_from=derived_from,
            supersedes=supersedes,
            extensions=extensions,
        )

    @Operation
    def plan(
        self, claim_id: str, plan: Mapping[str, Any] | Sequence[Any], *, extensions: Mapping[str, Any] | None = None
    ) -> Request[ClaimChanged]:
        """Record the holder's plan for the work."""
        return post(at("claims", claim_id, "plan"), ClaimChanged, plan=plan, extensions=extensions)

    @Operation
    def report_usage(
        self,
        claim_id: str,
        usage: Sequence[ModelUsage | Mapping[str, Any]],
        *,
        reserve_usd: float | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimSpending]:
        """Report what model calls used under a claim, before it ends; the reply says what the caps leave."""
        return post(
            at("claims", claim_id, "usage"),
            ClaimSpending,
            usage=[as_object(one) for one in usage],
            reserve_usd=reserve_usd,
            extensions=extensions,
        )

    @Operation
    def report_progress(
        self,
        claim_id: str,
        text: str | None = None,
        *,
        percent: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ProgressReported]:
        """Report progress for those who watch the task. A claim gets at most one record per second: an earlier report
        is not recorded, and the reply says when it would be.
        """
        return post(
            at("claims", claim_id, "progress"), ProgressReported, text=text, percent=percent, extensions=extensions
        )

    @Operation
    def complete(
        self,
        claim_id: str,
        *,
        output: Any = None,
        artifacts: Sequence[NewArtifact | Mapping[str, Any]] | None = None,
        summary: str | None = None,
        artifact_ids: Sequence[str] | None = None,
        cost_usd: float | None = None,
        duration_seconds: int | None = None,
        semantic: Literal["pass", "fail", "skipped"] | None = None,
        attempts: int | None = None,
        notes: str | None = None,
        claim_next: ClaimNext | Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimEnded]:
        """Complete a task and, if `claimNext` is set, claim the next one in the same request."""
        return post(
            at("claims", claim_id, "complete"),
            ClaimEnded,
            output=output,
            artifacts=[as_object(one) for one in artifacts] if artifacts is not None else None,
            summary=summary,
            artifact_ids=artifact_ids,
            cost_usd=cost_usd,
            duration_seconds=duration_seconds,
            semantic=semantic,
            attempts=attempts,
            notes=notes,
            claim_next=as_object(claim_next),
            extensions=extensions,
        )

    @Operation
    def fail(
        self,
        claim_id: str,
        reason: str,
        *,
        kind: FailureKind | None = None,
        claim_next: ClaimNext | Mapping[str, Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimEnded]:
        """Report that a task failed; another attempt follows if its policy has one left."""
        return post(
            at("claims", claim_id, "fail"),
            ClaimEnded,
            reason=reason,
            kind=kind,
            claim_next=as_object(claim_next),
            extensions=extensions,
        )

    @Listing
    def events(
        self,
        claim_id: str,
        *,
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """List what happened to a claim."""
        return get(at("claims", claim_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)
