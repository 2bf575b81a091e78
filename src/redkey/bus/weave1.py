"""Weave v1 beside v0: messages of v1 are stored as sent, and each agent gets them in its own version.

A v1 agent sends actions (`action.submit`), results and task events, and submits relays, for which the bus assigns the
ids. Every id is derived from what was asked, so that the same request again is the same. A v0 agent gets actions as
one message; a v1 agent gets v0 messages with the names that v1 has for their fields.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import orjson

from redkey.bus.envelope import Envelope
from redkey.bus.mailbox import OutgoingMessage
from redkey.bus.model import MESSAGE, SessionRecord, SessionState
from redkey.bus.runtime.events import META, payload_of_v0, text_of
from redkey.bus.runtime.weave1_fields import CARRIED, NAMES, add_sender_name, given
from redkey.errors import BusRefused

VERSION_1 = 1
COMMANDS_OF_CONTROL = ("new", "compact", "interrupt", "review")
_IDS = uuid.UUID("c1d5e8a2-4f6b-4d4e-9b51-2a7d0e9c6f33")
# The fields of an envelope that a v0 agent gets besides version, type and payload.
_V0_FIELDS = ("id", "ts", "src", "dst", "topic", "session", "corr", "ack")


class Action(msgspec.Struct, frozen=True):
    """One action for one agent, and its index in the submission."""

    dst: str
    index: int
    fields: dict[str, Any]


def derived(*parts: str) -> str:
    """An id that follows from what was asked."""
    return str(uuid.uuid5(_IDS, "\n".join(parts)))


def read_actions(value: Any) -> list[Action]:
    """Read the actions of a submission in order; `wait` is for the client only and is skipped."""
    if not isinstance(value, list) or not value:
        raise BusRefused(
            "actions must be a list with at least one action", code="actions_invalid", pointer="/payload/actions"
        )
    valid = []
    for index, action in enumerate(value):
        kind = action.get("type") if isinstance(action, dict) else None
        if kind == "wait":
            continue
        where = f"/payload/actions/{index}"
        if kind not in ("message", "control") or not given(action.get("dst")):
            message = "an action needs type message or control, and a dst"
            raise BusRefused(message, code="actions_invalid", pointer=where)
        if kind == "message" and not given(action.get("text")):
            raise BusRefused("a message action needs a text", code="actions_invalid", pointer=f"{where}/text")
        command = "new" if action.get("command") == "new_session" else action.get("command")
        if kind == "control" and command not in COMMANDS_OF_CONTROL:
            message = f"command must be one of {', '.join(COMMANDS_OF_CONTROL)}"
            raise BusRefused(message, code="actions_invalid", pointer=f"{where}/command")
        fields = {**action, "command": command} if kind == "control" else dict(action)
        valid.append(Action(str(given(action["dst"])), index, fields))
    return valid


def for_v1(message: OutgoingMessage) -> bytes:
    """Give a message as v1: without `corr`, and the fields of `codex` also under their v1 names.

    A v1 client would take a line with the `corr` of one of its requests for the answer, and confirms a message by its
    `corr` if it has one.
    """
    envelope = orjson.loads(message.line)
    envelope.pop("corr", None)
    envelope["v"] = VERSION_1
    if message.type != MESSAGE:
        return orjson.dumps(envelope) + b"\n"
    payload = envelope.get("payload")
    if not isinstance(payload, dict):
        payload = {"text": text_of(payload)}
    codex = payload.get(META)
    codex = codex if isinstance(codex, dict) else {}
    named = {new: codex[old] for old, new in NAMES.items() if old in codex}
    kind = {"kind": codex["kind"]} if "kind" in codex else {}
    text = {} if isinstance(payload.get("text"), str) else {"text": text_of(payload)}
    envelope["payload"] = {**named, **kind, **payload, **text}
    meta = add_sender_name(envelope.get("meta"), given(codex.get("sender_name")))
    if meta is not None:
        envelope["meta"] = meta
    return orjson.dumps(envelope) + b"\n"


def event_for_v1(record: SessionRecord, agent_id: str) -> bytes:
    """Give an event of a session as v1. One that an agent sent to all is addressed to its reader.

    A v1 client ignores events of other agents that have no `dst`.
    """
    envelope = {**orjson.loads(record.envelope), "v": VERSION_1}
    if record.type in CARRIED:
        envelope["dst"] = agent_id
    return orjson.dumps(envelope) + b"\n"


def for_v0(message: OutgoingMessage) -> bytes:
    """Give a message of v1 as one message of v0."""
    envelope = orjson.loads(message.line)
    payload = envelope.get("payload")
    if isinstance(payload, dict):
        whole = {"weave": payload} if message.type in CARRIED else {}
        payload = {**payload_of_v0(envelope, payload), **whole}
    kept = {name: envelope[name] for name in _V0_FIELDS if name in envelope}
    return orjson.dumps({"v": 0, "type": MESSAGE, **kept, "payload": payload}) + b"\n"


def with_sender_name(session: SessionState, request: Envelope) -> Envelope:
    """Complete a message of v1 with the name of its sender, which v1 clients do not send."""
    agent = session.agents.get(request.src)
    meta = add_sender_name(request.meta, agent.name if agent is not None else None)
    return request if meta is request.meta else msgspec.structs.replace(request, meta=meta)
