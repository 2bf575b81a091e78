"""A record of the ledger as a message of the bus: what it says, and which agents of a session it concerns."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from redkey.bus.envelope import EVERYBODY, LEDGER, VERSION, Envelope
from redkey.bus.runtime.events import META
from redkey.bus.state import MESSAGE, Session
from redkey.ledger.ports import Reader
from redkey.readmodel.events import ShownEvent, show
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity
from redkey.readmodel.view import read_document
from redkey.reducers.world import World
from redkey.services.outcome import Settled

_IDS = uuid.UUID("0d2f7c1e-7a55-4a8e-b3c4-5d0e8f6a9b12")
# A holder that is alive says so again and again; nobody wants to be told each time.
_SILENT = frozenset({"task.lease_extended"})


def concerns(record: Settled) -> bool:
    """True for what a bound session is told: task events, claims missed among them, and inbox wires."""
    kind: str = record.event.type
    return (kind.startswith("task.") and kind not in _SILENT) or kind == "inbox.sent"


def receiver(record: Settled, world: World, session: Session) -> str | None:
    """The one agent that a record is for; EVERYBODY when it is for all; None when it is for somebody not here."""
    payload = record.wire["payload"]
    if record.event.type == "inbox.sent":
        to: str = payload["to"]
        return EVERYBODY if to == "human" else _present(to.removeprefix("agent:"), world, session)
    if record.event.type in ("task.claim_missed", "task.claim_rejected"):
        loser = payload.get("agent_id") or record.event.stream.stream_id.removeprefix("agent:")
        return _present(loser, world, session) or EVERYBODY
    return EVERYBODY


def _present(agent_id: str, world: World, session: Session) -> str | None:
    """How an agent of the ledger is called in a session: by its id, or by its slug."""
    agent = world.agents.get(agent_id)
    names = (agent_id, agent.slug if agent is not None else "")
    return next((name for name in names if name in session.agents), None)


def told(record: Settled, reader: Reader, topic: str, session: Session, to: str, now: str) -> Envelope:
    """The message that tells of a record; its id follows from the record's, so that it is sent once."""
    event = show(record.wire, record.sequence, record.timestamp)
    body: dict[str, Any] = {"event": msgspec.to_builtins(event)}
    task_id = event.data.get("taskId")
    title = _title(reader, topic, task_id) if isinstance(task_id, str) else ""
    if title:
        body["task"] = {"id": task_id, "title": title}
    text = _sentence(event, title)
    if event.type == "inbox.sent":
        said = read_document(reader, topic, record.wire["payload"]["body_ref"]["sha256"]) or {}
        body["message"] = {"subject": said.get("subject", ""), "body": said.get("body", "")}
        text = f"{text}: {said.get('subject', '')}"
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


def _title(reader: Reader, topic: str, task_id: str) -> str:
    """What a task is called; empty when its text was erased."""
    row = reader.row(topic, "task", task_id)
    document = task_document(reader, topic, entity(row)) if row is not None else None
    return str((document or {}).get("title", ""))


def _sentence(event: ShownEvent, title: str) -> str:
    subject = f"{event.subject.type}:{event.subject.id}"
    what = f'"{title}" ({subject})' if title else subject
    return f"{event.type} {what} by {event.actor.type}:{event.actor.id}"
