"""Relay policy: which messages are relayed to whom, decided by kind and by the chain of replies, never by retries.

User messages are relayed; replies only if the policy says so; control and system messages never. A message with a
destination goes only there, one without goes to the leads. A chain of answers has a limit (`conduct`), so two agents
that always answer each other stop at the same message every time.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from redkey.bus.runtime.conduct import CHAIN_LIMIT, Conduct
from redkey.bus.runtime.events import AgentsUpdated, Input, Kind, Message, MessageReceived, Peer, SessionUpdated

LeadPolicy = Literal["single", "multiple"]


class RelayPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a runtime relays."""

    leads: LeadPolicy = "single"
    relay_replies: bool = False
    chain: int = CHAIN_LIMIT


class RelayedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the runtime wants to send."""

    session_id: str
    src: str
    dst: str
    kind: Kind
    text: str
    reply_to: str


class Relay:
    """The relay of one runtime: it knows the agents of its sessions and decides what is relayed."""

    def __init__(self, policy: RelayPolicy | None = None) -> None:
        self.policy = policy or RelayPolicy()
        self._agents: dict[str, tuple[Peer, ...]] = {}
        self._conduct = Conduct(chain=self.policy.chain)

    def handle(self, event: Input) -> list[RelayedMessage]:
        """Process an input; return the messages to send."""
        if isinstance(event, AgentsUpdated):
            self._agents[event.session_id] = event.agents
        elif isinstance(event, SessionUpdated) and event.status == "closed":
            self._agents.pop(event.session_id, None)
        elif isinstance(event, MessageReceived):
            return self._relay(event.message)
        return []

    def _relay(self, message: Message) -> list[RelayedMessage]:
        agents = self._agents.get(message.session_id)
        if agents is None or not self._passes(message):
            return []
        if message.dst is not None:
            targets = [message.dst] if message.dst != message.src else []
        else:
            targets = lead_targets(agents, message.src, self.policy.leads)
        return [
            RelayedMessage(
                session_id=message.session_id,
                src=message.src,
                dst=target,
                kind=message.kind,
                text=message.text,
                reply_to=message.id,
            )
            for target in targets
        ]

    def _passes(self, message: Message) -> bool:
        if message.kind in ("control", "system") or (message.kind == "reply" and not self.policy.relay_replies):
            return False
        self._conduct.note(message, 0.0)
        return self._conduct.may_answer(message)


def lead_targets(agents: tuple[Peer, ...], src: str, policy: LeadPolicy) -> list[str]:
    """The leads that get a message without a destination: the first by id, or all."""
    leads = sorted(agent.id for agent in agents if agent.lead and agent.id != src)
    return leads[:1] if policy == "single" else leads
