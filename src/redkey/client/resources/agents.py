"""Agents: registered by their cards, seen, changed, heard of; and how their claims went."""

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
        """The same as it happens, without end and without gap."""
        return following(at("agents", agent_id, "events"), type=type, after=after)
