"""Queues: create, show and change them; list their tasks, and those that may be claimed now.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, patch, post
from redkey.shapes.claims import ClaimNextOutcome
from redkey.shapes.fields import Page
from redkey.shapes.queues import CreatedQueue, Queue, QueueCounts
from redkey.shapes.tasks import Priority


class Queues(Resource[Mode]):
    """Queues: create, show and change them; list their tasks, and those that may be claimed now."""

    @Operation
    def claim_next(
        self,
        queue: str,
        agent_id: str,
        *,
        lease_seconds: int | None = None,
        count: int | None = None,
        wait: float = 0,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ClaimNextOutcome]:
        """Claim the next task of a queue, with its input and brief; `wait` waits for one."""
        return post(
            at("queues", queue, "claim-next"),
            ClaimNextOutcome,
            wait_seconds=wait,
            agent_id=agent_id,
            lease_seconds=lease_seconds,
            count=count,
            wait=wait or None,
            extensions=extensions,
        )

    @Operation
    def create(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        lease_seconds: int | None = None,
        max_attempts: int | None = None,
        priority: Priority | None = None,
        paused: bool | None = None,
        allow_secrets: bool | None = None,
        max_live_claims: int | None = None,
        max_lease_losses: int | None = None,
        idle_seconds: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedQueue]:
        """Create a queue; without an id, the id is derived from its name."""
        return post(
            "/queues",
            CreatedQueue,
            name=name,
            id=id,
            description=description,
            lease_seconds=lease_seconds,
            max_attempts=max_attempts,
            priority=priority,
            paused=paused,
            allow_secrets=allow_secrets,
            max_live_claims=max_live_claims,
            max_lease_losses=max_lease_losses,
            idle_seconds=idle_seconds,
            extensions=extensions,
        )

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[Queue]]:
        """List the queues of the workspace, by id."""
        return get("/queues", Page[Queue], limit=limit, after=after)

    @Operation
    def get(self, queue: str) -> Request[Queue]:
        """Show a queue with its settings."""
        return get(at("queues", queue), Queue)

    @Operation
    def update(
        self,
        queue: str,
        *,
        name: str | None = None,
        description: str | None = None,
        lease_seconds: int | None = None,
        max_attempts: int | None = None,
        priority: Priority | None = None,
        paused: bool | None = None,
        allow_secrets: bool | None = None,
        max_live_claims: int | None = None,
        max_lease_losses: int | None = None,
        idle_seconds: int | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[Queue]:
        """Change a queue: its settings, its limits, its name; pause or resume it."""
        return patch(
            at("queues", queue),
            Queue,
            name=name,
            description=description,
            lease_seconds=lease_seconds,
            max_attempts=max_attempts,
            priority=priority,
            paused=paused,
            allow_secrets=allow_secrets,
            max_live_claims=max_live_claims,
            max_lease_losses=max_lease_losses,
            idle_seconds=idle_seconds,
            extensions=extensions,
        )

    @Operation
    def counts(self, queue: str) -> Request[QueueCounts]:
        """How many tasks of a queue are in which state, however many there are."""
        return get(at("queues", queue, "counts"), QueueCounts)
