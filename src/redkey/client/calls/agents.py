"""Agents: registered by their cards, listed, changed, deactivated; their heartbeats, and how their claims went.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, beat, get, patch, post
from redkey.shapes.agents import Agent, AgentHeard, ClaimHistoryItem, DeactivatedAgent, Pause, RegisteredAgent
from redkey.shapes.events import Event, Order
from redkey.shapes.fields import Page
from redkey.shapes.inbox import InboxMessage


class Agents(Resource[Mode]):
    """Agents: registered by their cards, listed, changed, deactivated; their heartbeats, and how their claims went."""

    @Operation
    def register(
        self,
        *,
        card: Mapping[str, Any] | None = None,
        card_url: str | None = None,
        framework: str | None = None,
        eligible_roles: Sequence[str] | None = None,
        issue_key: bool | None = None,
        workspace_id: str | None = None,
    ) -> Request[RegisteredAgent]:
        """Register an agent by its card, given or to be fetched; with `issueKey` it gets a key of its own."""
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
        card: Mapping[str, Any] | None = None,
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
        self,
        agent_id: str,
        *,
        capacity: int | None = None,
        in_use: int | None = None,
        pause: Pause | None = None,
        pause_seconds: int | None = None,
        account: str | None = None,
    ) -> Request[AgentHeard]:
        """Tell that the agent is alive; recorded when something changed or it was silent for a while."""
        return beat(
            at("agents", agent_id, "heartbeat"),
            AgentHeard,
            capacity=capacity,
            in_use=in_use,
            pause=pause,
            pause_seconds=pause_seconds,
            account=account,
        )

    @Operation
    def deactivate(self, agent_id: str) -> Request[DeactivatedAgent]:
        """Deactivate an agent: it claims nothing more; what it holds runs out."""
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
        type: Sequence[str] | str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Request[Page[Event]]:
        """What an agent did and what happened to it, such as claims it missed; live with Accept: text/event-stream."""
        return get(at("agents", agent_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)

    @Listing
    def inbox(
        self, agent_id: str, *, unread: bool | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[InboxMessage]]:
        """Messages to an agent, by priority, then by age."""
        return get(at("agents", agent_id, "inbox"), Page[InboxMessage], unread=unread, limit=limit, after=after)
