"""Messages about events of the ledger: which events are sent, to which agents, with what text."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from redkey.bus.envelope import ALL_AGENTS, LEDGER, VERSION, Envelope
from redkey.bus.model import MESSAGE, SessionState
from redkey.bus.runtime.events import META
from redkey.services.notices import Notice

_IDS = uuid.UUID("0d2f7c1e-7a55-4a8e-b3c4-5d0e8f6a9b12")
# Leases are extended all the time, so these events are not sent.
_SILENT = frozenset({"task.lease_extended"})


def concerns(event_type: str) -> bool:
    """True for events that a bound session receives: task events, missed claims included, and inbox wires."""
    return (event_type.startswith("task.") and event_type not in _SILENT) or event_type == "inbox.sent"


def receiver(notice: Notice, session: SessionState) -> str | None:
    """The receiver of an event: an agent by id or slug, all agents, or None for mail to an agent not in the session."""
    present = next((name for name in notice.agent if name in session.agents), None)
    if present is None and notice.agent and notice.message is not None:
        return None
    return present or ALL_AGENTS


def event_message(notice: Notice, session: SessionState, to: str, now: str) -> Envelope:
    """The message about an event; its id is derived from the event's, so it is sent once."""
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
        dst=None if to == ALL_AGENTS else to,
        topic=ALL_AGENTS if to == ALL_AGENTS else None,
        session=session.id,
        payload={"text": text, META: {"sender_name": "RedKey", "kind": "system"}, "redkey": body},
    )


def _sentence(notice: Notice) -> str:
    event = notice.event
    subject = f"{event.subject.type}:{event.subject.id}"
    what = f'"{notice.title}" ({subject})' if notice.title else subject
    return f"{event.type} {what} by {event.actor.type}:{event.actor.id}"
