"""Messages as both faces show them."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from redkey.bus.bus import Bus
from redkey.bus.runtime.events import message_of
from redkey.bus.state import MESSAGE, Record, Session
from redkey.errors import BusRefused


def show_session(session: Session) -> dict[str, Any]:
    """A session as it is shown on the socket, where existing clients want a name that is text."""
    return {**session.as_json(), "name": session.name or ""}


def show_mail(record: Record, agent_id: str) -> dict[str, Any]:
    """A message that waits for an agent."""
    return {**show_envelope(orjson.loads(record.envelope)), "dst": agent_id, "seq": record.seq}


def find_message(bus: Bus, session: Session, message_id: str) -> Record:
    record = bus.log.find(session.number, message_id)
    if record is None or record.type != MESSAGE:
        raise BusRefused("message not found", code="message_not_found")
    return record


def show_message(bus: Bus, session: Session, message_id: str) -> dict[str, Any]:
    """One message with all fields of the seed, and how far it has come to each receiver."""
    record = find_message(bus, session, message_id)
    shown = show_envelope(orjson.loads(record.envelope))
    return {**shown, "deliveries": bus.deliveries(session, record, shown["dst"])}


def show_envelope(envelope: dict[str, Any]) -> dict[str, Any]:
    """A message as JSON: the fields of the seed, null where there is nothing, and how it is confirmed."""
    found: dict[str, Any] = msgspec.to_builtins(message_of(envelope))
    return {**found, "ack": envelope.get("ack")}
