"""The ledger: single events, queries, and events as they happen."""

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
    """Follow the events at a path as they happen."""
    return Flowing(partial(follow, get(path, Event, accept=EVENT_STREAM, **query)))


class Events(events.Events[Mode]):
    """The events of the workspace."""

    @Stream
    def follow(
        self,
        *,
        type: str | Sequence[str] | None = None,
        agent_id: str | None = None,
        workflow_id: str | None = None,
        queue: str | None = None,
        after: int | None = None,
        types: str | Sequence[str] | None = None,
    ) -> Flowing[Event]:
        """Follow the events of the workspace as they happen, from now or after a sequence; resumed without a gap.

        `types` is the old name of `type`.
        """
        # Servers of version 0.1 only know `types`.
        wanted = type if types is None else types
        return following(
            "/stream", types=wanted, agent_id=agent_id, workflow_id=workflow_id, queue_id=queue, after=after
        )
