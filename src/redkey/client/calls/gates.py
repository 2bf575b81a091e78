"""Gates: approvals that completed tasks wait for. A worker may approve its own work only if the workspace allows it,

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, post
from redkey.shapes.fields import Page
from redkey.shapes.gates import Gate, GateDecided


class Gates(Resource[Mode]):
    """Gates: approvals that completed tasks wait for. A worker may approve its own work only if the workspace allows
    it,
    """

    @Listing
    def list(
        self, *, state: Literal["open", "closed"] | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[Gate]]:
        """List gates: approvals that tasks wait for."""
        return get("/gates", Page[Gate], state=state, limit=limit, after=after)

    @Operation
    def get(self, gate_id: str) -> Request[Gate]:
        """Show a gate."""
        return get(at("gates", gate_id), Gate)

    @Operation
    def approve(
        self, gate_id: str, note: str | None = None, *, extensions: Mapping[str, Any] | None = None
    ) -> Request[GateDecided]:
        """Approve a completed task: its dependents may start."""
        return post(at("gates", gate_id, "approve"), GateDecided, note=note, extensions=extensions)

    @Operation
    def reject(self, gate_id: str, note: str, *, extensions: Mapping[str, Any] | None = None) -> Request[GateDecided]:
        """Reject a completed task: another attempt gets the note, if any attempts are left."""
        return post(at("gates", gate_id, "reject"), GateDecided, note=note, extensions=extensions)
