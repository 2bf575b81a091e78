"""The agent of a slot: registered with a key of its own, so that the ledger names the agent and not its installer."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from redkey.client import RedKey
from redkey.client.agent_slots import Slot
from redkey.errors import ConfigRefused, Conflict, Forbidden, NotFound, Unauthorized
from redkey.mcp.place import ServerPlace
from redkey.wire.names import role_id


def enter(place: ServerPlace, slot: Slot, roles: tuple[str, ...], queue: str) -> None:
    """Give the slot an agent with a valid key, its roles, and its queue."""
    with RedKey(place.url, place.api_key, timeout=10, max_retries=2) as admin:
        if not _has_key(place, slot):
            _register(admin, slot)
        slot.kept.url = place.url
        slot.save()
        _prepare(admin, slot, roles, queue)


def _has_key(place: ServerPlace, slot: Slot) -> bool:
    """Whether the key of the slot is valid on this server, for its agent."""
    if not slot.kept.api_key:
        return False
    try:
        with RedKey(place.url, slot.kept.api_key, timeout=10, max_retries=2) as own:
            return own.agents.get(slot.kept.agent_id).agent_id == slot.kept.agent_id
    except (Unauthorized, Forbidden, NotFound):
        return False


def _register(admin: RedKey, slot: Slot) -> None:
    card = {"name": slot.name, "description": f"A coding agent on {socket.gethostname()}", "version": "1"}
    try:
        agent = admin.agents.register(card=card, framework="mcp")
        workspace = next(iter(admin.workspaces.list(own=True))).workspace_id
        key = admin.keys.create(workspace, scopes=["agent", "produce"], agent_id=agent.agent_id, name=slot.name)
    except Forbidden as refused:
        raise ConfigRefused(
            f"this key may not register an agent ({refused.detail}): `redkey mcp` needs an admin key to give each "
            "client process an agent and a key of its own. With an agent's key use /mcp of the server."
        ) from None
    slot.kept.agent_id, slot.kept.api_key = agent.agent_id, key.api_key


def _prepare(admin: RedKey, slot: Slot, roles: tuple[str, ...], queue: str) -> None:
    agent = admin.agents.get(slot.kept.agent_id)
    if not agent.active:
        admin.agents.update(agent.agent_id, active=True)
    for named in {role_id(name) for name in roles} - set(agent.roles):
        # Another process may create the same role or queue at the same time.
        with suppress(Conflict):
            if not _exists(admin.roles.get, named):
                admin.roles.create(named.removeprefix("role_"), id=named)
        admin.roles.grant(named, agent.agent_id)
    with suppress(Conflict):
        if not _exists(admin.queues.get, queue):
            admin.queues.create(queue.removeprefix("queue_").removeprefix("queues."))


def _exists(get: Callable[[str], object], name: str) -> bool:
    try:
        get(name)
    except NotFound:
        return False
    return True
