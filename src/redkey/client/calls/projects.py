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
from redkey.shapes.projects import Project, ProjectChanged


class Projects(Resource[Mode]):
    """Projects: they group phases, and a workflow run belongs to a phase."""

    @Operation
    def create(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ProjectChanged]:
        """Create a project."""
        return post("/projects", ProjectChanged, name=name, id=id, description=description, extensions=extensions)

    @Listing
    def list(
        self,
        *,
        state: Literal["active", "on_hold", "completed"] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Project]]:
        """List the projects of the workspace with their phases, oldest first."""
        return get("/projects", Page[Project], state=state, limit=limit, after=after)

    @Operation
    def get(self, project_id: str) -> Request[Project]:
        """Show a project with its phases."""
        return get(at("projects", project_id), Project)

    @Operation
    def update(
        self,
        project_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        state: Literal["active", "on_hold"] | None = None,
        status: Literal["active", "on_hold"] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[ProjectChanged]:
        """Change a project: its name, its description, its state."""
        return patch(
            at("projects", project_id),
            ProjectChanged,
            name=name,
            description=description,
            state=state,
            status=status,
            extensions=extensions,
        )

    @Operation
    def complete(self, project_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[ProjectChanged]:
        """Complete a project whose phases are all completed; it accepts no more phases."""
        return post(at("projects", project_id, "complete"), ProjectChanged, extensions=extensions)

    @Listing
    def events(
        self,
        project_id: str,
        *,
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """List what happened to a project, to its phases and to the tasks of its context."""
        return get(at("projects", project_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)
