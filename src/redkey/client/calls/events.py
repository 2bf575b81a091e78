"""Events of the ledger: one by id, those of one thing, by query, and live.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, get
from redkey.shapes.events import Event


class Events(Resource[Mode]):
    """Events of the ledger: one by id, those of one thing, by query, and live."""

    @Operation
    def get(self, event_id: str) -> Request[Event]:
        """Show an event."""
        return get(at("events", event_id), Event)
