"""Roles: eligibility to claim certain tasks. Only a grant makes an agent eligible, and only admins grant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Body, Listed, Name, Page, Text, Word, given, place_after, wrong
from redkey.api.texts import keep
from redkey.commands.decision import not_found
from redkey.commands.registry import CreateRole, GrantRole, RevokeRole
from redkey.http.route import ADMIN, READ, Route
from redkey.readmodel.agent_view import RoleView, role_view
from redkey.readmodel.rows import entity
from redkey.readmodel.view import View, read_document
from redkey.reducers.entities import Role
from redkey.services.outcome import Outcome
from redkey.wire.a2a_card import slug, slugs
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import ROLE_ID, role_id


class NewRole(Body, frozen=True, kw_only=True):
    """A role; without an id it is named after its name."""

    id: Word = ""
    name: Name
    description: Text = ""
    capabilities: Annotated[tuple[Word, ...], Meta(max_length=8)] = ()


class CreatedRole(View, frozen=True, kw_only=True):
    """A new role."""

    id: str
    name: str
    description: str = ""
    capabilities: tuple[str, ...]
    event_id: str


class Granted(View, frozen=True, kw_only=True):
    """Whether an agent has a role now; an event only when that changed."""

    role_id: str
    agent_id: str
    status: Literal["granted", "revoked"]
    event_id: str = ""


async def create_role(call: Call, body: NewRole) -> CreatedRole:
    """Create a role."""
    named = role_id(body.id or slug(body.name))
    if not ROLE_ID.fullmatch(named):
        text = "an id has 1 to 27 letters, digits, dots, dashes and underscores and begins with a letter or digit"
        raise wrong("role_invalid", "/id" if body.id else "/name", text)
    ref, content = keep(call, given(body, "name", "description"))
    outcome = await call.submit(CreateRole(named, ref, capability_slugs(body.capabilities)), (content,))
    return _created(call, outcome)


def capability_slugs(words: tuple[str, ...], under: str = "/capabilities") -> tuple[str, ...]:
    """Capabilities as slugs; one that cannot be written as a slug is refused."""
    for index, word in enumerate(words):
        if not slug(word):
            raise wrong("capability_invalid", f"{under}/{index}", "a capability holds a Latin letter or a digit")
    return slugs(words)


def _created(call: Call, outcome: Outcome) -> CreatedRole:
    wire = outcome.records[0].wire
    document = read_document(call.services.store, call.topic, wire["payload"]["role_ref"]["sha256"]) or {}
    return CreatedRole(
        id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=document.get("name", ""),
        description=document.get("description", ""),
        capabilities=tuple(wire["payload"].get("capabilities", ())),
        event_id=event_id(wire["wire_id"]),
    )


def _show(call: Call, role: Role) -> RoleView:
    return role_view(role, read_document(call.services.store, call.topic, role.content_sha256))


async def list_roles(call: Call) -> Listed[RoleView]:
    """The roles of the workspace, by id."""
    asked: Page = call.query
    rows = call.services.store.rows(call.topic, "role", None, (0, place_after(asked)[1]), asked.limit)
    following = f"0.{rows[-1].key}" if len(rows) == asked.limit else None
    return Listed([_show(call, entity(row)) for row in rows], following)


async def get_role(call: Call) -> RoleView:
    """One role, with the agents that have it."""
    row = call.services.store.row(call.topic, "role", role_id(call.path["role_id"]))
    if row is None:
        raise not_found("role")
    return _show(call, entity(row))


async def grant_role(call: Call) -> Granted:
    """Make an agent eligible for the tasks that need a role."""
    return await _change(call, GrantRole, "granted")


async def revoke_role(call: Call) -> Granted:
    """Take a role from an agent; what it holds it may finish."""
    return await _change(call, RevokeRole, "revoked")


async def _change(call: Call, command: Any, status: Literal["granted", "revoked"]) -> Granted:
    named, agent_id = role_id(call.path["role_id"]), call.path["agent_id"]
    outcome = await call.submit(command(named, agent_id))
    record = outcome.first(f"role.{status}")
    happened = event_id(record.event.wire_id) if record is not None else ""
    return Granted(role_id=named, agent_id=agent_id, status=status, event_id=happened)


_EXAMPLE = {
    "id": "role_researcher",
    "name": "Researcher",
    "description": "Finds source material and summarizes relevant findings",
    "capabilities": ["web_search", "source_review"],
}

ROUTES = [
    Route(
        "POST",
        "/roles",
        create_role,
        ADMIN,
        body=NewRole,
        reply=CreatedRole,
        status=201,
        summary="Create a role.",
        replies={409: "The role exists already."},
        idempotent=True,
        example=_EXAMPLE,
        reply_example={**_EXAMPLE, "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"},
    ),
    Route("GET", "/roles", list_roles, READ, query=Page, reply=Listed[RoleView], summary="List roles."),
    Route("GET", "/roles/{role_id}", get_role, READ, reply=RoleView, summary="One role and who has it."),
    Route(
        "POST",
        "/roles/{role_id}/agents/{agent_id}",
        grant_role,
        ADMIN,
        reply=Granted,
        summary="Grant a role to an agent.",
        idempotent=True,
    ),
    Route(
        "DELETE",
        "/roles/{role_id}/agents/{agent_id}",
        revoke_role,
        ADMIN,
        reply=Granted,
        summary="Revoke a role from an agent.",
    ),
]
