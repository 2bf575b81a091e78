"""An event of the ledger as a message of the bus: what it says, and which agents of a session are told."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from redkey.bus.envelope import EVERYBODY, LEDGER, VERSION, Envelope
from redkey.bus.runtime.events import META
from redkey.bus.state import MESSAGE, Session
from redkey.services.notices import Notice

_IDS = uuid.UUID("0d2f7c1e-7a55-4a8e-b3c4-5d0e8f6a9b12")
# Holders extend their leases all the time; that is no news.
_SILENT = frozenset({"task.lease_extended"})


def concerns(event_type: str) -> bool:
    """True for what a bound session is told: task events, claims missed among them, and inbox wires."""
    return (event_type.startswith("task.") and event_type not in _SILENT) or event_type == "inbox.sent"


def receiver(notice: Notice, session: Session) -> str | None:
    """The agent of a session that is told, by its id or slug; EVERYBODY; None for mail to an agent that is not here."""
    present = next((name for name in notice.agent if name in session.agents), None)
    if present is None and notice.agent and notice.message is not None:
        return None
    return present or EVERYBODY


def told(notice: Notice, session: Session, to: str, now: str) -> Envelope:
    """The message that tells of an event; its id follows from the event's, so that it is sent once."""
    event = notice.event
    body: dict[str, Any] = {"event": msgspec.to_builtins(event)}
    if notice.title:
        body["task"] = {"id": notice.task_id, "title": notice.title}
    text = _sentence(notice)
    if notice.message is not None:
        body["message"] = msgspec.to_builtins(notice.message)
        text = f"{text}: {notice.message.subject}"
    return Envelope(
        v=VERSION,
        type=MESSAGE,
        id=str(uuid.uuid5(_IDS, f"{session.key}\n{event.event_id}\n{to}")),
        ts=now,
        src=LEDGER,
        dst=None if to == EVERYBODY else to,
        topic=EVERYBODY if to == EVERYBODY else None,
        session=session.id,
        payload={"text": text, META: {"sender_name": "RedKey", "kind": "system"}, "redkey": body},
    )


def _sentence(notice: Notice) -> str:
    event = notice.event
    subject = f"{event.subject.type}:{event.subject.id}"
    what = f'"{notice.title}" ({subject})' if notice.title else subject
    return f"{event.type} {what} by {event.actor.type}:{event.actor.id}"
