"""Agents: registered by their cards, seen, changed, heard of; and how their claims went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from redkey.client.flow import Flowing
from redkey.client.operation import Listing, Mode, Operation, Resource, Stream
from redkey.client.replies import Page
from redkey.client.request import Request, at, beat, get, patch, post
from redkey.client.resources.inbox import InboxMessage
from redkey.client.resources.ledger import Event, Order, events_at, following
from redkey.shapes.agents import Agent as Agent
from redkey.shapes.agents import AgentHeard as AgentHeard
from redkey.shapes.agents import AgentVerification as AgentVerification
from redkey.shapes.agents import AuthRequirement as AuthRequirement
from redkey.shapes.agents import ClaimHistoryItem as ClaimHistoryItem
from redkey.shapes.agents import DeactivatedAgent as DeactivatedAgent
from redkey.shapes.agents import Endpoint as Endpoint
from redkey.shapes.agents import RegisteredAgent as RegisteredAgent
from redkey.shapes.agents import Skill as Skill


class Agents(Resource[Mode]):
    """Agents of the workspace."""

    @Operation
    def register(
        self,
        *,
        card: dict[str, Any] | None = None,
        card_url: str | None = None,
        framework: str | None = None,
        eligible_roles: Sequence[str] | None = None,
        issue_key: bool | None = None,
        workspace_id: str | None = None,
    ) -> Request[RegisteredAgent]:
        """Register an agent by its Agent Card, given or to be fetched; with `issue_key` it gets a key of its own."""
        return post(
            "/agents/register-card",
            RegisteredAgent,
            agent_card=card,
            agent_card_url=card_url,
            framework=framework,
            eligible_roles=eligible_roles,
            issue_key=issue_key,
            workspace_id=workspace_id,
        )

    @Listing
    def list(
        self,
        *,
        slug: str | None = None,
        role: str | None = None,
        active: bool | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Agent]]:
        """The agents of the workspace."""
        return get("/agents", Page[Agent], slug=slug, role=role, active=active, limit=limit, after=after)

    @Operation
    def get(self, agent_id: str) -> Request[Agent]:
        """One agent, with its card."""
        return get(at("agents", agent_id), Agent)

    @Operation
    def update(
        self,
        agent_id: str,
        *,
        slug: str | None = None,
        card: dict[str, Any] | None = None,
        framework: str | None = None,
        eligible_roles: Sequence[str] | None = None,
        verification: Literal["verified", "unverified"] | None = None,
        active: bool | None = None,
    ) -> Request[Agent]:
        """Change an agent: its card, its slug, whether it is verified or active."""
        return patch(
            at("agents", agent_id),
            Agent,
            slug=slug,
            agent_card=card,
            framework=framework,
            eligible_roles=eligible_roles,
            verification=verification,
            active=active,
        )

    @Operation
    def heartbeat(
        self, agent_id: str, *, capacity: int | None = None, in_use: int | None = None
    ) -> Request[AgentHeard]:
        """Tell that an agent is alive, and how much work it can take and has."""
        return beat(at("agents", agent_id, "heartbeat"), AgentHeard, capacity=capacity, in_use=in_use)

    @Operation
    def deactivate(self, agent_id: str) -> Request[DeactivatedAgent]:
        """Deactivate an agent: it claims nothing more."""
        return post(at("agents", agent_id, "deactivate"), DeactivatedAgent)

    @Listing
    def claim_history(
        self, agent_id: str, *, limit: int | None = None, after: str | None = None
    ) -> Request[Page[ClaimHistoryItem]]:
        """How an agent's claims went, the newest first: won, missed, rejected."""
        return get(at("agents", agent_id, "claim-history"), Page[ClaimHistoryItem], limit=limit, after=after)

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

    @Listing
    def inbox(
        self, agent_id: str, *, unread: bool | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[InboxMessage]]:
        """Messages to an agent, by priority, then by age."""
        return get(at("agents", agent_id, "inbox"), Page[InboxMessage], unread=unread, limit=limit, after=after)
