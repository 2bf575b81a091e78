"""An event: a record as the public API and receipts show it, computed from the wire and its place alone.

So a verifier that has a proven wire knows what the event must look like, and refuses a receipt with other fields.
"""

from __future__ import annotations

from typing import Any

from redkey.errors import ProofRefused
from redkey.ledger.record import Record, iso_time
from redkey.shapes.events import EventHead, Party
from redkey.wire.decode import decode
from redkey.wire.ids import event_id, parse_stream, stated

# The subject of these types is not the first word of the type.
_SUBJECT_KIND = {"inbox": "message"}


def event_of(record: Record) -> EventHead:
    """Return the event of a record."""
    return event_at(decode(record.wire), record.sequence, record.timestamp)


def event_at(wire: Any, sequence: int, timestamp: int) -> EventHead:
    """Return the event of a decoded wire at its place; raise ProofRefused if it is not a 1.1 wire."""
    try:
        return EventHead(
            event_id=event_id(wire["wire_id"]),
            type=wire["type"],
            sequence=sequence,
            timestamp=iso_time(timestamp),
            actor=_actor(wire),
            subject=_subject(wire),
        )
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as cause:
        raise ProofRefused("the wire is not an Agent Wire 1.1 message", code="wire_unreadable") from cause


def _actor(wire: dict[str, Any]) -> Party:
    kind, _, name = wire["sender"].partition(":")
    # The system writes the outcome of a claim, but the actor is the agent that asked.
    if wire["type"].startswith("task.claim"):
        return Party(type="agent", id=str(stated(wire, "agent_id") or name or kind))
    if kind in ("agent", "runner"):
        # The actor on an agent's stream is the agent, unless another party writes to its inbox.
        own = wire["type"].startswith("agent.")
        named = stated(wire, "agent_id") if own else wire["payload"].get("agent_id")
        # A runner acts for the agent that it names.
        return Party(type="agent" if named else kind, id=str(named or name))
    return sender_of(wire)


def sender_of(wire: dict[str, Any]) -> Party:
    """Return the sender as a party. In receipts of the first version a runner is the actor, not its agent."""
    kind, _, name = wire["sender"].partition(":")
    return Party(type=kind, id=name or kind)


def subject_kind(event: str) -> str:
    """Return the kind of subject of an event type: the first word of the type."""
    first = event.partition(".")[0]
    return _SUBJECT_KIND.get(first, first)


def _subject(wire: dict[str, Any]) -> Party:
    kind = subject_kind(wire["type"])
    named = stated(wire, f"{kind}_id")
    if named is not None:
        return Party(type=kind, id=str(named))
    stream = parse_stream(wire["stream"]["stream_id"])
    return Party(type=stream.kind, id=stream.subject)
