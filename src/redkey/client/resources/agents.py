"""Agents: register, list, change and follow them, and their history of claims."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.calls import agents
from redkey.client.flow import Flowing
from redkey.client.operation import Mode, Stream
from redkey.client.request import at
from redkey.client.resources.ledger import following
from redkey.shapes.events import Event


class Agents(agents.Agents[Mode]):
    """Agents of the workspace."""

    @Stream
    def follow(
        self, agent_id: str, *, type: str | Sequence[str] | None = None, after: int | None = None
    ) -> Flowing[Event]:
        """Follow the agent's events as they happen, resuming without a gap."""
        return following(at("agents", agent_id, "events"), type=type, after=after)
