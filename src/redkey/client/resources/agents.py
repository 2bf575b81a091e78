"""Agents: registered by their cards, seen, changed, heard of; and how their claims went."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.calls import agents
from redkey.client.flow import Flowing
from redkey.client.operation import Listing, Mode, Stream
from redkey.client.replies import Page
from redkey.client.request import Request, at
from redkey.client.resources.ledger import Event, Order, events_at, following
from redkey.shapes.agents import (
    Agent,
    AgentHeard,
    AgentVerification,
    AuthRequirement,
    ClaimHistoryItem,
    DeactivatedAgent,
    Endpoint,
    RegisteredAgent,
    Skill,
)

__all__ = [
    "Agent",
    "AgentHeard",
    "AgentVerification",
    "Agents",
    "AuthRequirement",
    "ClaimHistoryItem",
    "DeactivatedAgent",
    "Endpoint",
    "RegisteredAgent",
    "Skill",
]


class Agents(agents.Agents[Mode]):
    """Agents of the workspace."""

    @Listing
    def events(
        self,
        agent_id: str,
        *,
        type: str | Sequence[str] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What an agent did and what happened to it, such as claims it missed."""
        return events_at(at("agents", agent_id, "events"), type=type, order=order, limit=limit, after=after)

    @Stream
    def follow(
        self, agent_id: str, *, type: str | Sequence[str] | None = None, after: int | None = None
    ) -> Flowing[Event]:
        """The same as it happens, without end and without gap."""
        return following(at("agents", agent_id, "events"), type=type, after=after)
