"""The A2A card of a workspace: its roles are the skills that a client may ask for."""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.services.caller import Caller
from redkey.services.means import Means
from redkey.services.use_cases.roles import list_roles
from redkey.services.workspaces import topic_of
from redkey.shapes.fields import PAGE_LIMIT, PageQuery
from redkey.shapes.roles import Role


def list_skills(caller: Caller) -> tuple[Role, ...]:
    """List the roles of the workspace, as many as a card may have."""
    return list_roles(caller, PageQuery(limit=PAGE_LIMIT)).items


def list_public_skills(means: Means, workspace_id: str) -> tuple[Role, ...]:
    """List the public roles that the operator chose, of the server's first workspace."""
    shown = frozenset(means.config.a2a.public_roles)
    topic = topic_of(means.store, workspace_id) if shown else None
    if topic is None:
        return ()
    caller = Caller(means)
    caller.actor, caller.topic = Actor(workspace_id, "", frozenset({"read"})), topic
    return tuple(role for role in list_skills(caller) if shown & {role.id, role.id.removeprefix("role_")})
