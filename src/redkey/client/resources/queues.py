"""Queues, and the claim of whatever is next on one."""

from __future__ import annotations

from typing import Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page, Reply
from redkey.client.request import Request, at, get, patch, post
from redkey.client.resources.claims import ClaimNextOutcome

Priority = Literal["urgent", "high", "normal", "low"]


class Queue(Reply, frozen=True, kw_only=True):
    """A queue and what it decides for its tasks."""

    queue_id: str
    name: str = ""
    description: str = ""
    lease_seconds: int
    max_attempts: int
    priority: str
    paused: bool
    allow_secrets: bool
    max_live_claims: int
    max_lease_losses: int
    created_at: str | None
    erased: bool = False


class CreatedQueue(Reply, frozen=True, kw_only=True):
    """A new queue."""

    queue_id: str
    name: str
    event_id: str


class Queues(Resource[Mode]):
    """Queues of the workspace; `podcast`, `queue_podcast` and `queues.podcast` are one."""

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
    ) -> Request[CreatedQueue]:
        """Create a queue; without an id it is named after its name."""
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
        )

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[Queue]]:
        """The queues of the workspace."""
        return get("/queues", Page[Queue], limit=limit, after=after)

    @Operation
    def get(self, queue: str) -> Request[Queue]:
        """One queue."""
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
    ) -> Request[Queue]:
        """Change a queue: its settings, its limits, its name; pause it or let it go on."""
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
        )

    @Operation
    def claim_next(
        self,
        queue: str,
        agent_id: str,
        *,
        lease_seconds: int | None = None,
        count: int | None = None,
        wait: float = 0,
    ) -> Request[ClaimNextOutcome]:
        """Claim the next task of a queue that the agent may claim; `wait` seconds for one when there is none.

        It comes with its input and brief. A race that was lost is an answer, never an error.
        """
        return post(
            at("queues", queue, "claim-next"),
            ClaimNextOutcome,
            wait_seconds=wait,
            agent_id=agent_id,
            lease_seconds=lease_seconds,
            count=count,
            wait=wait or None,
        )
