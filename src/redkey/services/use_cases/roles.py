"""Roles: eligibility to claim certain tasks. Only a grant makes an agent eligible, and only admins grant."""

from __future__ import annotations

import msgspec

from redkey.commands.decision import not_found, wrong
from redkey.commands.registry import CreateRole, GrantRole, RemoveRole, RevokeRole, UpdateRole
from redkey.readmodel.agent_view import role_view
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_id import new_id
from redkey.services.use_cases.pages import page_by_key, read_entity
from redkey.services.use_cases.texts import keep
from redkey.shapes import roles
from redkey.shapes.fields import Page, PageQuery, set_fields
from redkey.shapes.roles import CreatedRole, NewRole, RemovedRole, Role, RoleGrant, RolePatch, UpdatedRole
from redkey.wire.a2a_card import slug, slugs
from redkey.wire.events import RoleRemoved, RoleRevoked
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.names import role_id


@use_case(roles.CREATE_ROLE)
def create_role(caller: Caller, new: NewRole) -> Pending[CreatedRole]:
    """Create a role."""
    named = new_id("role", new.id, new.name)
    ref, content = keep(caller, set_fields(new, "name", "description"))
    return Pending(CreateRole(named, ref, capability_slugs(new.capabilities)), _created, (content,))


def capability_slugs(words: tuple[str, ...], under: str = "/capabilities") -> tuple[str, ...]:
    """Return capabilities as slugs; one that cannot be written as a slug is refused."""
    for index, word in enumerate(words):
        if not slug(word):
            raise wrong("capability_invalid", f"{under}/{index}", "a capability holds a Latin letter or a digit")
    return slugs(words)


def _created(outcome: Outcome, place: Place) -> CreatedRole:
    wire = outcome.records[0].wire
    document = place.document(wire["payload"]["role_ref"]["sha256"]) or {}
    return CreatedRole(
        id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=document.get("name", ""),
        description=document.get("description", ""),
        capabilities=tuple(wire["payload"].get("capabilities", ())),
        event_id=event_id(wire["wire_id"]),
    )


def _show(caller: Caller, role: entities.Role) -> Role:
    return role_view(role, read_document(caller.means.store, caller.topic, role.content_sha256))


@use_case(roles.LIST_ROLES)
def list_roles(caller: Caller, asked: PageQuery) -> Page[Role]:
    """List the roles of the workspace, by id."""
    found: Page[entities.Role] = page_by_key(caller, "role", asked, lambda role: role)
    return Page(tuple(_show(caller, role) for role in found.items if not role.removed_at), found.next)


@use_case(roles.GET_ROLE)
def get_role(caller: Caller, name: str) -> Role:
    """Show one role, with the agents that have it."""
    return _show(caller, _live(caller, name))


def _live(caller: Caller, name: str) -> entities.Role:
    role = read_entity(caller, entities.Role, role_id(name))
    if role.removed_at:
        raise not_found("role")
    return role


@use_case(roles.PATCH_ROLE)
def patch_role(caller: Caller, name: str, patch: RolePatch) -> Pending[UpdatedRole]:
    """Change a role, also one that a plan created."""
    role = _live(caller, name)
    if patch == RolePatch():
        raise wrong("nothing_to_change", "", "name at least one field to change")
    able = capability_slugs(patch.capabilities) if patch.capabilities is not None else None
    stated = set_fields(patch, "name", "description")

    def reply(outcome: Outcome, place: Place) -> UpdatedRole:
        changed = place.world.roles[role.role_id]
        shown = role_view(changed, place.document(changed.content_sha256))
        return UpdatedRole(**msgspec.structs.asdict(shown), event_id=outcome.event_id)

    if not stated:
        return Pending(UpdateRole(role.role_id, None, able), reply)
    before = read_document(caller.means.store, caller.topic, role.content_sha256) or {}
    ref, content = keep(caller, {**before, **stated})
    return Pending(UpdateRole(role.role_id, ref, able), reply, (content,))


@use_case(roles.REMOVE_ROLE)
def remove_role(caller: Caller, name: str) -> Pending[RemovedRole]:
    """Take a role from every agent and remove it."""
    named = role_id(name)

    def reply(outcome: Outcome, place: Place) -> RemovedRole:
        payloads = [(one.event, one.event.payload) for one in outcome.records]
        held = tuple(payload.agent_id for _, payload in payloads if isinstance(payload, RoleRevoked))
        (removed,) = (event for event, payload in payloads if isinstance(payload, RoleRemoved))
        return RemovedRole(id=named, status="removed", agents=held, event_id=event_id(removed.wire_id))

    return Pending(RemoveRole(named), reply)


@use_case(roles.GRANT_ROLE)
def grant_role(caller: Caller, name: str, agent_id: str) -> Pending[RoleGrant]:
    """Make an agent eligible for the tasks that need a role."""
    named = role_id(name)
    return Pending(GrantRole(named, agent_id), lambda outcome, _: _changed(outcome, named, agent_id, "granted"))


@use_case(roles.REVOKE_ROLE)
def revoke_role(caller: Caller, name: str, agent_id: str) -> Pending[RoleGrant]:
    """Take a role from an agent; it may finish its current tasks."""
    named = role_id(name)
    return Pending(RevokeRole(named, agent_id), lambda outcome, _: _changed(outcome, named, agent_id, "revoked"))


def _changed(outcome: Outcome, role: str, agent_id: str, status: str) -> RoleGrant:
    record = outcome.first(f"role.{status}")
    happened = event_id(record.event.wire_id) if record is not None else ""
    return RoleGrant(role_id=role, agent_id=agent_id, status=status, event_id=happened)
