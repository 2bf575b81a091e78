"""Gates: approvals that completed tasks wait for. Who did the work decides on it only where the workspace allows it,

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from typing import Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, post
from redkey.shapes.fields import Page
from redkey.shapes.gates import Gate, GateDecided


class Gates(Resource[Mode]):
    """Gates: approvals that completed tasks wait for. Who did the work decides on it only where the workspace allows
    it,
    """

    @Listing
    def list(
        self, *, state: Literal["open", "closed"] | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[Gate]]:
        """Approvals that are awaited."""
        return get("/gates", Page[Gate], state=state, limit=limit, after=after)

    @Operation
    def get(self, gate_id: str) -> Request[Gate]:
        """One gate."""
        return get(at("gates", gate_id), Gate)

    @Operation
    def approve(self, gate_id: str, note: str | None = None) -> Request[GateDecided]:
        """Approve what was done: what depends on it goes on."""
        return post(at("gates", gate_id, "approve"), GateDecided, note=note)

    @Operation
    def reject(self, gate_id: str, note: str) -> Request[GateDecided]:
        """Send back what was done: another attempt gets the note, while there are attempts."""
        return post(at("gates", gate_id, "reject"), GateDecided, note=note)
