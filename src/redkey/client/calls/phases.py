"""Projects: they group phases, and a workflow run belongs to a phase.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, patch, post
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import Page
from redkey.shapes.projects import Phase, ProjectChanged


class Phases(Resource[Mode]):
    """Projects: they group phases, and a workflow run belongs to a phase."""

    @Operation
    def create(
        self,
        project_id: str,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ProjectChanged]:
        """Create a phase of a project."""
        return post(
            at("projects", project_id, "phases"),
            ProjectChanged,
            name=name,
            id=id,
            description=description,
            extensions=extensions,
        )

    @Operation
    def get(self, phase_id: str) -> Request[Phase]:
        """Show a phase with its live runs."""
        return get(at("phases", phase_id), Phase)

    @Operation
    def update(
        self,
        phase_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        state: Literal["active", "on_hold"] | None = None,
        status: Literal["active", "on_hold"] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ProjectChanged]:
        """Change a phase: its name, its description, its state."""
        return patch(
            at("phases", phase_id),
            ProjectChanged,
            name=name,
            description=description,
            state=state,
            status=status,
            extensions=extensions,
        )

    @Operation
    def complete(self, phase_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[ProjectChanged]:
        """Complete a phase whose runs have all ended; it accepts no more runs."""
        return post(at("phases", phase_id, "complete"), ProjectChanged, extensions=extensions)

    @Listing
    def events(
        self,
        phase_id: str,
        *,
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """List what happened to a phase, including the start of its runs."""
        return get(at("phases", phase_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)
