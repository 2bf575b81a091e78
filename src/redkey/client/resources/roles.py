"""Roles: eligibility to claim certain tasks."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page, Reply
from redkey.client.request import Request, at, delete, get, post


class Role(Reply, frozen=True, kw_only=True):
    """A role: eligibility to claim certain tasks."""

    id: str
    name: str = ""
    description: str = ""
    capabilities: tuple[str, ...]
    agents: tuple[str, ...]
    created_at: str | None
    erased: bool = False


class CreatedRole(Reply, frozen=True, kw_only=True):
    """A new role."""

    id: str
    name: str
    description: str = ""
    capabilities: tuple[str, ...]
    event_id: str


class RoleGrant(Reply, frozen=True, kw_only=True):
    """Whether an agent has a role now; an event only when that changed."""

    role_id: str
    agent_id: str
    status: str
    event_id: str = ""


class Roles(Resource[Mode]):
    """Roles of the workspace; `researcher`, `role_researcher` and `roles.researcher` are one."""

    @Operation
    def create(
        self,
        name: str,
        *,
        id: str | None = None,
        description: str | None = None,
        capabilities: Sequence[str] | None = None,
    ) -> Request[CreatedRole]:
        """Create a role; its capabilities become those of every agent that has it."""
        return post("/roles", CreatedRole, name=name, id=id, description=description, capabilities=capabilities)

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[Role]]:
        """The roles of the workspace."""
        return get("/roles", Page[Role], limit=limit, after=after)

    @Operation
    def get(self, role: str) -> Request[Role]:
        """One role, with the agents that have it."""
        return get(at("roles", role), Role)

    @Operation
    def grant(self, role: str, agent_id: str) -> Request[RoleGrant]:
        """Make an agent eligible."""
        return post(at("roles", role, "agents", agent_id), RoleGrant)

    @Operation
    def revoke(self, role: str, agent_id: str) -> Request[RoleGrant]:
        """Take a role away; claims that are running finish."""
        return delete(at("roles", role, "agents", agent_id), RoleGrant)
