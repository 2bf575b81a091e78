"""Enlisting: the agent and the queue of a worker, created if they are missing and the key is allowed to.

A named agent is found by its name and remains after the run. Without a name, the agent belongs to this process only:
two processes of one script must not be one agent, because the server repeats a claim to the agent that holds it, and
both would work on it.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
from dataclasses import dataclass
from typing import Any

from redkey.client.calls.queues import Queues
from redkey.client.calls.roles import Roles
from redkey.client.connection import SyncSender
from redkey.client.operation import Sync
from redkey.client.resources.agents import Agents
from redkey.errors import CallMisused, Conflict, Forbidden, NotFound
from redkey.shapes.agents import Agent
from redkey.wire.names import AGENT_ID, SLUG, role_id

_log = logging.getLogger("redkey.client.worker")


@dataclass(frozen=True, slots=True)
class Enlisted:
    """The agent that a worker acts as; `passing` if it was registered for this run only."""

    agent_id: str
    slug: str
    passing: bool


def enlist(
    sender: SyncSender,
    agent: str | dict[str, Any] | None,
    name: str,
    queue: str,
    roles: tuple[str, ...],
    max_attempts: int | None = None,
) -> Enlisted:
    """Return the agent with its roles, then find or create its queue; `max_attempts` is for a new queue."""
    agents: Agents[Sync] = Agents(sender)
    try:
        enlisted = _agent(agents, agent, name)
        if not enlisted.active:
            enlisted = agents.update(enlisted.agent_id, active=True)
    except Forbidden as refused:
        raise CallMisused(
            f"this key may not register or activate an agent ({refused.detail}): name one that is active, as in "
            "agent='agt_...'",
            code="agent_missing",
        ) from None
    _grant(sender, enlisted, roles)
    _queue(Queues(sender), queue, max_attempts)
    return Enlisted(enlisted.agent_id, enlisted.slug, agent is None)


def _agent(agents: Agents[Sync], agent: str | dict[str, Any] | None, name: str) -> Agent:
    if isinstance(agent, str) and AGENT_ID.fullmatch(agent):
        return agents.get(agent)
    if isinstance(agent, dict):
        return _by_card(agents, agent)
    if isinstance(agent, str):
        if not SLUG.fullmatch(agent):
            raise CallMisused(
                f"{agent!r} is no agent: give its id, a name of up to 32 lower-case letters, digits, dots and dashes, "
                "or a card",
                code="agent_invalid",
            )
        return _by_name(agents, agent)
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:20] or "worker"
    return _register(agents, f"{plain}-{secrets.token_hex(4)}")


def _by_name(agents: Agents[Sync], name: str) -> Agent:
    for found in agents.list(slug=name):
        return found
    try:
        return _register(agents, name)
    except Conflict:
        # Another process created it first.
        for found in agents.list(slug=name):
            return found
        raise


def card_slug(card: dict[str, Any]) -> str:
    """Return the slug for the agent of a card; empty if the card's name gives none."""
    identity = card.get("identity")
    named = identity.get("slug") if isinstance(identity, dict) else card.get("name")
    slug = re.sub(r"[^a-z0-9._-]+", "-", str(named).lower()).strip("-")[:32]
    return slug if SLUG.fullmatch(slug) else ""


def _by_card(agents: Agents[Sync], card: dict[str, Any]) -> Agent:
    """Return the agent of a card, found by its name if it was registered before, so a restart reuses the agent."""
    slug = card_slug(card)
    if slug:
        for found in agents.list(slug=slug):
            if agents.get(found.agent_id).card == card:
                return found
    registered = agents.register(card=card)
    _log.info("registered agent %s (%s)", registered.slug, registered.agent_id)
    return registered


def _register(agents: Agents[Sync], name: str) -> Agent:
    description = f"A worker of redkey.client on {socket.gethostname()}"
    registered = agents.register(card={"name": name, "description": description, "version": "1"}, framework="redkey")
    _log.info("registered agent %s (%s)", registered.slug, registered.agent_id)
    return registered


def _grant(sender: SyncSender, agent: Agent, names: tuple[str, ...]) -> None:
    roles: Roles[Sync] = Roles(sender)
    for name in names:
        named = role_id(name)
        if named in agent.roles:
            continue
        try:
            _create_role(roles, named)
            roles.grant(named, agent.agent_id)
        except Forbidden:
            raise CallMisused(
                f"agent {agent.slug} lacks {named}, and this key may not grant it: ask an admin to run "
                f"`redkey role grant {named} {agent.agent_id}`",
                code="missing_role",
            ) from None


def _create_role(roles: Roles[Sync], named: str) -> None:
    try:
        roles.get(named)
    except NotFound:
        try:
            roles.create(named.removeprefix("role_"), id=named)
            _log.warning("created the missing %s", named)
        except Conflict:
            return


def _queue(queues: Queues[Sync], name: str, max_attempts: int | None) -> None:
    try:
        queues.get(name)
    except NotFound:
        try:
            queue = queues.create(name.removeprefix("queue_").removeprefix("queues."), max_attempts=max_attempts)
            _log.warning("created the missing %s", queue.queue_id)
        except Conflict:
            return
        except Forbidden:
            raise CallMisused(
                f"there is no queue {name}, and this key may not create it: run `redkey queue create {name}`",
                code="queue_not_found",
            ) from None
