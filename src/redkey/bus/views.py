"""Sessions and messages as JSON, the same on both faces."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from redkey.bus.bus import Bus
from redkey.bus.model import MESSAGE, SessionRecord, SessionState
from redkey.bus.runtime.events import message_of
from redkey.errors import BusRefused


def show_session(session: SessionState) -> dict[str, Any]:
    """Show a session on the socket, where existing clients need a name that is a string."""
    return {**session.as_json(), "name": session.name or ""}


def show_mail(record: SessionRecord, agent_id: str) -> dict[str, Any]:
    """Show a message that waits for an agent."""
    return {**show_envelope(orjson.loads(record.envelope)), "dst": agent_id, "seq": record.seq}


def find_message(bus: Bus, session: SessionState, message_id: str) -> SessionRecord:
    """Find the record of a message."""
    record = bus.log.find(session.number, message_id)
    if record is None or record.type != MESSAGE:
        raise BusRefused("message not found", code="message_not_found")
    return record


def show_message(bus: Bus, session: SessionState, message_id: str) -> dict[str, Any]:
    """Show one message with all fields of seed 002 and the state of its deliveries."""
    record = find_message(bus, session, message_id)
    shown = show_envelope(orjson.loads(record.envelope))
    return {**shown, "deliveries": bus.deliveries(session, record, shown["dst"])}


def show_envelope(envelope: dict[str, Any]) -> dict[str, Any]:
    """Show a message: the fields of seed 002, null where absent, and its `ack`."""
    fields: dict[str, Any] = msgspec.to_builtins(message_of(envelope))
    return {**fields, "ack": envelope.get("ack")}
