"""Agents: registered by their cards, listed, changed, deactivated; their heartbeats and claim history.

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
    """Agents: registered by their cards, listed, changed, deactivated; their heartbeats and claim history."""

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
        slot: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[RegisteredAgent]:
        """Register an agent by its card, in the request or at a URL; the same card is the same agent. With `issueKey`
        it gets an API key of its own.
        """
        return post(
            "/agents/register-card",
            RegisteredAgent,
            agent_card=card,
            agent_card_url=card_url,
            framework=framework,
            eligible_roles=eligible_roles,
            issue_key=issue_key,
            workspace_id=workspace_id,
            slot=slot,
            extensions=extensions,
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
        """Show an agent with its card."""
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
        extensions: Mapping[str, Any] | None = None,
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
            extensions=extensions,
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
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[AgentHeard]:
        """Report that the agent is alive; recorded if something changed or it was not seen for a while."""
        return beat(
            at("agents", agent_id, "heartbeat"),
            AgentHeard,
            capacity=capacity,
            in_use=in_use,
            pause=pause,
            pause_seconds=pause_seconds,
            account=account,
            extensions=extensions,
        )

    @Operation
    def deactivate(self, agent_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[DeactivatedAgent]:
        """Deactivate an agent: it claims nothing more, and its leases expire."""
        return post(at("agents", agent_id, "deactivate"), DeactivatedAgent, extensions=extensions)

    @Listing
    def claim_history(
        self, agent_id: str, *, limit: int | None = None, after: str | None = None
    ) -> Request[Page[ClaimHistoryItem]]:
        """List the outcomes of an agent's claims, newest first: claimed, missed, rejected."""
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
        """List what an agent did and what happened to it, such as missed claims; live with text/event-stream."""
        return get(at("agents", agent_id, "events"), Page[Event], type=type, order=order, limit=limit, after=after)

    @Listing
    def inbox(
        self, agent_id: str, *, unread: bool | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[InboxMessage]]:
        """List messages to an agent, by priority, then by age."""
        return get(at("agents", agent_id, "inbox"), Page[InboxMessage], unread=unread, limit=limit, after=after)
