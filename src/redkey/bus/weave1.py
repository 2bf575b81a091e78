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

from redkey.bus.mailbox import OutgoingMessage
from redkey.bus.model import MESSAGE
from redkey.bus.runtime.events import META, text_of
from redkey.bus.runtime.weave1_fields import NAMES, action_text, codex_of, context_of, given
from redkey.errors import BusRefused

VERSION_1 = 1
# The types that v1 agents send to each other besides `message.send`.
CARRIED = frozenset({"action.submit", "action.result", "message.created", "task.updated", "task.done", "relay.done"})
COMMANDS_OF_CONTROL = ("new", "compact", "interrupt", "review")
_IDS = uuid.UUID("c1d5e8a2-4f6b-4d4e-9b51-2a7d0e9c6f33")

# The fields of results and task events that a v0 agent gets as text.
_SHOWN_FIELDS = ("action_id", "task_id", "relay_id", "status", "detail", "summary")


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
    """Give a message as v1: the fields of `codex` also under their v1 names."""
    if message.type != MESSAGE:
        return as_v1(message.line)
    envelope = orjson.loads(message.line)
    payload = envelope.get("payload")
    if not isinstance(payload, dict):
        payload = {"text": text_of(payload)}
    meta = payload.get(META)
    codex = meta if isinstance(meta, dict) else {}
    named = {new: codex[old] for old, new in NAMES.items() if old in codex}
    kind = {"kind": codex["kind"]} if "kind" in codex else {}
    envelope = {**envelope, "v": VERSION_1, "payload": {**named, **kind, "text": text_of(payload), **payload}}
    if given(codex.get("sender_name")) and "meta" not in envelope:
        envelope["meta"] = {"weave": {"origin_src_name": codex["sender_name"]}}
    return orjson.dumps(envelope) + b"\n"


def as_v1(line: bytes) -> bytes:
    """Give a line of the bus with `v` set to 1; nothing else differs."""
    return line.replace(b'"v":0', b'"v":1', 1)


def for_v0(message: OutgoingMessage) -> bytes:
    """Give a message of v1 as one message of v0."""
    if message.type == MESSAGE:
        return message.line.replace(b'"v":1', b'"v":0', 1)
    envelope = orjson.loads(message.line)
    payload = envelope.get("payload") if isinstance(envelope.get("payload"), dict) else {}
    if message.type == "action.submit":
        actions = payload.get("actions") or []
        body = {"text": action_text(actions), META: context_of(actions, payload.get("context"))}
    elif message.type == "message.created":
        body = {"text": text_of(payload), META: codex_of(payload, envelope.get("meta"))}
    else:
        words = [str(payload[name]) for name in _SHOWN_FIELDS if payload.get(name)]
        body = {"text": f"{message.type} {' '.join(words)}".strip(), META: {"kind": "system"}}
    kept = {name: envelope[name] for name in ("id", "ts", "src", "dst", "session", "corr", "ack") if name in envelope}
    return orjson.dumps({"v": 0, "type": MESSAGE, **kept, "payload": {**body, "weave": payload}}) + b"\n"
