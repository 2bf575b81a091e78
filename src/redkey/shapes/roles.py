"""Roles: eligibility to claim certain tasks."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from redkey.shapes.fields import Extended, Name, Page, PageQuery, Reply, Text, Word, one_of
from redkey.shapes.operation import ADMIN, READ, Operation


class NewRole(Extended, frozen=True, kw_only=True):
    """A role; without an id, the id is derived from its name."""

    id: Annotated[Word, Meta(description="Its id [derived from its name].")] = ""
    name: Name
    description: Annotated[Text, Meta(description="What its holders do.")] = ""
    capabilities: Annotated[tuple[Word, ...], Meta(max_length=8, description="What every holder can do.")] = ()


class RolePatch(Extended, frozen=True, kw_only=True):
    """What to change about a role; fields that are not named stay."""

    name: Annotated[Name, Meta(description="Its name; the id stays.")] | None = None
    description: Annotated[Text, Meta(description="What its holders do.")] | None = None
    capabilities: (
        Annotated[tuple[Word, ...], Meta(max_length=8, description="The full list of what every holder can do.")] | None
    ) = None


class Role(Reply, frozen=True, kw_only=True):
    """A role: eligibility to claim certain tasks."""

    id: str
    role_id: str
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


class UpdatedRole(Role, frozen=True, kw_only=True):
    """The role after the change."""

    event_id: str


class RemovedRole(Reply, frozen=True, kw_only=True):
    """A removed role, and the agents that had it."""

    id: str
    status: Annotated[str, one_of("removed")]
    agents: tuple[str, ...]
    event_id: str


class RoleGrant(Reply, frozen=True, kw_only=True):
    """Whether an agent has a role now; an event is written only if that changed."""

    role_id: str
    agent_id: str
    status: Annotated[str, one_of("granted", "revoked")]
    event_id: str = ""


CREATE_ROLE = Operation(
    "create_role",
    "POST",
    "/roles",
    ADMIN,
    body=NewRole,
    reply=CreatedRole,
    status=201,
    summary="Create a role.",
    replies={409: "The role already exists."},
    example={
        "id": "role_researcher",
        "name": "Researcher",
        "description": "Finds source material and summarizes relevant findings",
        "capabilities": ["web_search", "source_review"],
    },
    method_name="roles.create",
    positional=("name",),
    command="role create NAME",
)
LIST_ROLES = Operation(
    "list_roles",
    "GET",
    "/roles",
    READ,
    query=PageQuery,
    reply=Page[Role],
    summary="List roles.",
    description="List the roles of the workspace, by id.",
    method_name="roles.list",
    command="role list",
)
GET_ROLE = Operation(
    "get_role",
    "GET",
    "/roles/{role_id}",
    READ,
    reply=Role,
    summary="Show a role with the agents that have it.",
    method_name="roles.get",
    command="role show ROLE",
)
PATCH_ROLE = Operation(
    "patch_role",
    "PATCH",
    "/roles/{role_id}",
    ADMIN,
    body=RolePatch,
    reply=UpdatedRole,
    repeats="bytes",
    summary="Change a role: its name, its description, its capabilities.",
    description="Change a role, including one that a plan created. New capabilities apply from the next claim on.",
    example={"capabilities": ["web_search", "source_review"]},
    method_name="roles.update",
    command="role update ROLE",
)
REMOVE_ROLE = Operation(
    "remove_role",
    "DELETE",
    "/roles/{role_id}",
    ADMIN,
    body=Extended,
    reply=RemovedRole,
    repeats="bytes",
    summary="Remove a role.",
    description="Take a role from every agent and remove it; refused while a task or a running plan needs it.",
    replies={409: "A task or a running plan needs the role."},
    method_name="roles.remove",
    command="role remove ROLE",
)
GRANT_ROLE = Operation(
    "grant_role",
    "POST",
    "/roles/{role_id}/agents/{agent_id}",
    ADMIN,
    body=Extended,
    reply=RoleGrant,
    summary="Grant a role to an agent.",
    description="Make an agent eligible for the tasks that need a role.",
    method_name="roles.grant",
    command="role grant ROLE AGENT",
)
REVOKE_ROLE = Operation(
    "revoke_role",
    "DELETE",
    "/roles/{role_id}/agents/{agent_id}",
    ADMIN,
    body=Extended,
    reply=RoleGrant,
    summary="Take a role from an agent.",
    description="Take a role from an agent; it may finish the tasks it holds.",
    method_name="roles.revoke",
    command="role revoke ROLE AGENT",
)

OPERATIONS = (CREATE_ROLE, LIST_ROLES, GET_ROLE, PATCH_ROLE, REMOVE_ROLE, GRANT_ROLE, REVOKE_ROLE)
