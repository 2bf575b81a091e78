"""Roles: eligibility to claim certain tasks.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get, patch, post
from redkey.shapes.fields import Page
from redkey.shapes.roles import CreatedRole, RemovedRole, Role, RoleGrant, UpdatedRole


class Roles(Resource[Mode]):
    """Roles: eligibility to claim certain tasks."""

    @Operation
    def create(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        capabilities: Sequence[str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreatedRole]:
        """Create a role."""
        return post(
            "/roles",
            CreatedRole,
            name=name,
            id=id,
            description=description,
            capabilities=capabilities,
            extensions=extensions,
        )

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[Role]]:
        """List the roles of the workspace, by id."""
        return get("/roles", Page[Role], limit=limit, after=after)

    @Operation
    def get(self, role: str) -> Request[Role]:
        """Show a role with the agents that have it."""
        return get(at("roles", role), Role)

    @Operation
    def update(
        self,
        role: str,
        *,
        name: str | None = None,
        description: str | None = None,
        capabilities: Sequence[str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[UpdatedRole]:
        """Change a role, including one that a plan created. New capabilities apply from the next claim on."""
        return patch(
            at("roles", role),
            UpdatedRole,
            name=name,
            description=description,
            capabilities=capabilities,
            extensions=extensions,
        )

    @Operation
    def remove(self, role: str, *, extensions: Mapping[str, Any] | None = None) -> Request[RemovedRole]:
        """Take a role from every agent and remove it; refused while a task or a running plan needs it."""
        return delete(at("roles", role), RemovedRole, extensions=extensions)

    @Operation
    def grant(self, role: str, agent_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[RoleGrant]:
        """Make an agent eligible for the tasks that need a role."""
        return post(at("roles", role, "agents", agent_id), RoleGrant, extensions=extensions)

    @Operation
    def revoke(self, role: str, agent_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[RoleGrant]:
        """Take a role from an agent; it may finish the tasks it holds."""
        return delete(at("roles", role, "agents", agent_id), RoleGrant, extensions=extensions)
