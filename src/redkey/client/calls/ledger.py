"""Events of the ledger: one by id, those of one thing, by query, and live.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.operation import Listing, Mode, Resource
from redkey.client.request import Request, get
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import Page


class Ledger(Resource[Mode]):
    """Events of the ledger: one by id, those of one thing, by query, and live."""

    @Listing
    def query(
        self,
        *,
        type: Sequence[str] | str | None = None,
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
        """Query events by type, subject and time. A page may be short of its limit and still have a `next`."""
        return get(
            "/ledger/query",
            Page[Event],
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
