"""The ledger: events one by one, by query, and as they happen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from redkey.client.flow import Flowing, follow
from redkey.client.operation import Listing, Mode, Operation, Resource, Stream
from redkey.client.replies import Page
from redkey.client.request import EVENT_STREAM, Request, at, get
from redkey.shapes.events import Event as Event
from redkey.shapes.events import Party as Party

Order = Literal["asc", "desc"]


def events_at(path: str, **query: Any) -> Request[Page[Event]]:
    """The events that a thing has at a path."""
    return get(path, Page[Event], **query)


def following(path: str, **query: Any) -> Flowing[Event]:
    """The events at a path, as they happen."""
    return Flowing(partial(follow, get(path, Event, accept=EVENT_STREAM, **query)))


class Events(Resource[Mode]):
    """What happened."""

    @Operation
    def get(self, event_id: str) -> Request[Event]:
        """One event."""
        return get(at("events", event_id), Event)

    @Stream
    def follow(
        self,
        *,
        types: str | Sequence[str] | None = None,
        agent_id: str | None = None,
        workflow_id: str | None = None,
        queue: str | None = None,
        after: int | None = None,
    ) -> Flowing[Event]:
        """The events of the workspace as they happen, from now on or after a sequence; resumed without gap."""
        return following(
            "/stream", types=types, agent_id=agent_id, workflow_id=workflow_id, queue_id=queue, after=after
        )


class Ledger(Resource[Mode]):
    """The whole record of the workspace."""

    @Listing
    def query(
        self,
        *,
        type: str | Sequence[str] | None = None,
        agent_id: str | None = None,
        task_id: str | None = None,
        claim_id: str | None = None,
        workflow_id: str | None = None,
        queue: str | None = None,
        since: str | None = None,
        until: str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """Events by type, by what they speak of, by time: from `since` on, before `until`."""
        return events_at(
            "/ledger/query",
            type=type,
            agent_id=agent_id,
            task_id=task_id,
            claim_id=claim_id,
            workflow_id=workflow_id,
            queue_id=queue,
            from_=since,
            to=until,
            order=order,
            limit=limit,
            after=after,
        )
