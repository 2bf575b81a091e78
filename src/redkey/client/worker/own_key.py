"""The key of a worker's own agent.

With this key, the ledger records the worker's actions as actions of its agent, not of the person or program whose key
registered the agent.

An agent with a name keeps its key in a slot (`redkey.client.agent_slots`): a restart continues under it, and a second
process under the same name is a second agent. A key that cannot be stored, or that belongs to an agent of one run, is
revoked when the run ends. If the client's key may not create keys, such as an agent's own key, the worker uses it as
it is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from redkey.client.agent_slots import Slot, first_free_slot, slot_folder
from redkey.client.calls.keys import Keys
from redkey.client.calls.workspaces import Workspaces
from redkey.client.connection import Connection, SyncSender
from redkey.client.operation import Sync
from redkey.client.resources.agents import Agents
from redkey.client.worker.declared import Worker
from redkey.client.worker.enlist import Enlisted, card_slug, enlist
from redkey.errors import ClientError, Forbidden, NotFound, Unauthorized
from redkey.wire.names import AGENT_ID, SLUG

_log = logging.getLogger("redkey.client.worker")
_MOST_SLOTS = 1000


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key of one agent. `key_id` is set for a key that is revoked after the run, and empty for a stored key."""

    api_key: str
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class Acting:
    """The agent that a worker acts as and its key; without a key the client's own key is used."""

    enlisted: Enlisted
    own: OwnKey | None
    slot: Slot | None

    def end(self, sender: SyncSender, workspace_id: str) -> None:
        """Deactivate the agent and revoke the key if they are for this run only, and release the slot."""
        if self.slot is not None:
            self.slot.leave()
        agents: Agents[Sync] = Agents(sender)
        keys: Keys[Sync] = Keys(sender)
        try:
            if self.enlisted.passing:
                agents.deactivate(self.enlisted.agent_id)
            if self.own is not None and self.own.key_id:
                keys.revoke(workspace_id, self.own.key_id)
        except ClientError as failure:
            _log.warning("%s could not be deactivated (%s)", self.enlisted.slug, failure.code)


class Registrar:
    """Registers the agents of one run with the client's key, and gets each agent its own key."""

    def __init__(self, sender: SyncSender, connect: Callable[[str], Connection]) -> None:
        self._sender, self._connect = sender, connect
        self._acting: dict[str, Acting] = {}
        self._workspace_id = ""

    def admit(self, worker: Worker) -> Acting:
        """Return the agent of a worker. Workers of one run that name the same agent share it."""
        name = _name(worker)
        shared = self._acting.get(name) if name else None
        if shared is not None:
            agent_id = shared.enlisted.agent_id
            return replace(
                shared, enlisted=enlist(self._sender, agent_id, worker.name, worker.queue, worker.roles), slot=None
            )
        slot = self._take_slot(name) if name else None
        try:
            wanted = worker.agent if slot is None else _renamed(worker.agent, name, slot.name)
            enlisted = enlist(self._sender, wanted, worker.name, worker.queue, worker.roles)
            acting = Acting(enlisted, self._own_key(enlisted, slot), slot)
        except BaseException:
            if slot is not None:
                slot.leave()
            raise
        self._acting[name or enlisted.agent_id] = acting
        return acting

    def end(self, sender: SyncSender) -> None:
        """Clean up everything of this run except named agents."""
        for acting in self._acting.values():
            acting.end(sender, self._workspace_id)

    def _take_slot(self, name: str) -> Slot | None:
        """Take the slot with this name, or with the first free number added; None if slots cannot be stored."""
        settings = self._sender.connection.settings
        where = "this machine" if settings.is_local else settings.base_url
        is_id = AGENT_ID.fullmatch(name) is not None
        try:
            folder = slot_folder(os.environ, f"worker {where} {self._find_workspace()}")
            # An agent given by its id is always that agent.
            return first_free_slot(folder, islice(_numbered(name), 1 if is_id else _MOST_SLOTS))
        except (OSError, ImportError, RuntimeError) as cause:
            _log.info("the key of %s is not kept after this run: %s", name, cause)
            return None

    def _own_key(self, enlisted: Enlisted, slot: Slot | None) -> OwnKey | None:
        if slot is not None and slot.kept.agent_id == enlisted.agent_id and self._opens(slot.kept.api_key, enlisted):
            return OwnKey(slot.kept.api_key)
        keys: Keys[Sync] = Keys(self._sender)
        try:
            created = keys.create(
                self._find_workspace(), scopes=["agent"], agent_id=enlisted.agent_id, name=f"worker {enlisted.slug}"
            )
        except (Forbidden, NotFound):
            return None
        if slot is not None:
            slot.kept.agent_id, slot.kept.api_key = enlisted.agent_id, created.api_key
            with suppress(OSError):
                slot.save()
                return OwnKey(created.api_key)
        return OwnKey(created.api_key, created.key_id)

    def _opens(self, api_key: str, enlisted: Enlisted) -> bool:
        """Whether a stored key is still valid."""
        if not api_key:
            return False
        agents: Agents[Sync] = Agents(SyncSender(self._connect(api_key), self._sender.policy))
        try:
            agents.get(enlisted.agent_id)
        except (Unauthorized, Forbidden, NotFound):
            return False
        return True

    def _find_workspace(self) -> str:
        if not self._workspace_id:
            workspaces: Workspaces[Sync] = Workspaces(self._sender)
            self._workspace_id = next((one.workspace_id for one in workspaces.list(own=True)), "")
        return self._workspace_id


def _name(worker: Worker) -> str:
    """Return what identifies the worker's agent; empty for an agent of this run only, or one that will be refused."""
    if isinstance(worker.agent, dict):
        return card_slug(worker.agent)
    return worker.agent if worker.agent and (AGENT_ID.fullmatch(worker.agent) or SLUG.fullmatch(worker.agent)) else ""


def _numbered(name: str) -> Iterator[str]:
    yield name
    for number in count(2):
        yield f"{name[: 31 - len(str(number))]}-{number}"


def _renamed(agent: str | dict[str, Any] | None, name: str, slot_name: str) -> str | dict[str, Any] | None:
    """Return the agent of a numbered slot."""
    if slot_name == name:
        return agent
    if not isinstance(agent, dict):
        return slot_name
    identity = agent.get("identity")
    return (
        {**agent, "identity": {**identity, "slug": slot_name}}
        if isinstance(identity, dict)
        else {**agent, "name": slot_name}
    )
