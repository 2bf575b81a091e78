"""Route messages without a destination to the leads, by the runtime's relay policy.

The message itself is recorded unchanged. Each copy to a lead is a message of its own with an id derived from the
original's, so a repeated request creates no second copy.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from redkey.bus.addressing import message_envelope
from redkey.bus.envelope import Envelope
from redkey.bus.model import SessionState
from redkey.bus.runtime.events import AgentsUpdated, MessageReceived, Peer, SessionUpdated, message_of, payload_of
from redkey.bus.runtime.relay import Relay, RelayPolicy

_COPIES = uuid.UUID("5f9c52f6-3f0a-4b51-9d6e-0c8f3f1b7a10")


def router(policy: RelayPolicy | None = None) -> Relaying:
    """Create the route of a bus for a policy."""
    return Relaying(Relay(policy))


class Relaying:
    """Relays messages without a destination to the leads of their session."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def __call__(self, session: SessionState, envelope: Envelope) -> Sequence[Envelope]:
        peers = tuple(Peer(agent.id, agent.name, agent.lead) for agent in session.agents.values())
        self._relay.handle(AgentsUpdated(session.key, peers))
        original = message_of(msgspec.to_builtins(envelope))
        # Two workspaces may use the same session id, so the relay uses the session's key.
        sends = self._relay.handle(MessageReceived(msgspec.structs.replace(original, session_id=session.key)))
        # The agents are passed in each time, so the relay keeps no session beyond the chains of its messages.
        self._relay.handle(SessionUpdated(session.key, "closed"))
        copies = []
        for send in sends:
            message = msgspec.structs.replace(original, dst=send.dst, kind=send.kind, reply_to=send.reply_to)
            key = str(uuid.uuid5(_COPIES, f"{session.key}\n{envelope.id}\n{send.dst}"))
            request = msgspec.structs.replace(envelope, id=key, dst=send.dst, payload=payload_of(message))
            copies.append(message_envelope(session, request))
        return copies
