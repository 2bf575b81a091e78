"""Where a message without destination goes: the bus asks the runtime's relay policy, and writes what it says.

The message itself is recorded as it came; each copy to a lead is a message of its own, whose id follows from the
original's, so that a repeated request makes no second copy.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from redkey.bus.envelope import Envelope
from redkey.bus.runtime.events import AgentsUpdated, MessageReceived, Peer, SessionUpdated, message_of, payload_of
from redkey.bus.runtime.relay import Policy, Relay
from redkey.bus.state import Session
from redkey.bus.state import message as as_message

_COPIES = uuid.UUID("5f9c52f6-3f0a-4b51-9d6e-0c8f3f1b7a10")


def router(policy: Policy | None = None) -> Relaying:
    """A route for the bus by a policy."""
    return Relaying(Relay(policy))


class Relaying:
    """Relays what has no destination to the leads of its session."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def __call__(self, session: Session, envelope: Envelope) -> Sequence[Envelope]:
        peers = tuple(Peer(agent.id, agent.name, agent.lead) for agent in session.agents.values())
        self._relay.handle(AgentsUpdated(session.key, peers))
        original = message_of(msgspec.to_builtins(envelope))
        # Two workspaces may have a session of the same id; the relay tells sessions apart by their keys.
        sends = self._relay.handle(MessageReceived(msgspec.structs.replace(original, session_id=session.key)))
        # Who is there is told each time: nothing of a session is kept beyond the chains of its messages.
        self._relay.handle(SessionUpdated(session.key, "closed"))
        copies = []
        for send in sends:
            message = msgspec.structs.replace(original, dst=send.dst, kind=send.kind, reply_to=send.reply_to)
            key = str(uuid.uuid5(_COPIES, f"{session.key}\n{envelope.id}\n{send.dst}"))
            asked = msgspec.structs.replace(envelope, id=key, dst=send.dst, payload=payload_of(message))
            copies.append(as_message(session, asked))
        return copies
