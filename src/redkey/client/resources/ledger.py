"""The ledger: events one by one, by query, and as they happen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from redkey.client.calls import events
from redkey.client.flow import Flowing, follow
from redkey.client.operation import Mode, Stream
from redkey.client.request import EVENT_STREAM, get
from redkey.shapes.events import Event


def following(path: str, **query: Any) -> Flowing[Event]:
    """The events at a path, as they happen."""
    return Flowing(partial(follow, get(path, Event, accept=EVENT_STREAM, **query)))


class Events(events.Events[Mode]):
    """What happened."""

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
