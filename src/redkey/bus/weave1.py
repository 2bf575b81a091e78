"""Weave v1 beside v0: what v1 agents send is carried as they sent it, and each agent reads it in its own version.

A v1 agent talks in actions (`action.submit`), results and task events, and leaves relays to the bus, which gives them
their ids. Every id follows from what was asked, so that the same request again is the same. A v0 agent gets actions as
one message; a v1 agent gets v0 messages with the names that v1 has for their fields.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import orjson

from redkey.bus.mailbox import Parcel
from redkey.bus.runtime.events import META, text_of
from redkey.bus.runtime.newer import NAMES, action_text, codex_of, context_of, given
from redkey.bus.state import MESSAGE
from redkey.errors import BusRefused

VERSION_1 = 1
# What v1 agents send to each other beside `message.send`.
CARRIED = frozenset({"action.submit", "action.result", "message.created", "task.updated", "task.done", "relay.done"})
COMMANDS_OF_CONTROL = ("new", "compact", "interrupt", "review")
_IDS = uuid.UUID("c1d5e8a2-4f6b-4d4e-9b51-2a7d0e9c6f33")

# What a v0 agent is told of results and task events.
_TOLD = ("action_id", "task_id", "relay_id", "status", "detail", "summary")


class Action(msgspec.Struct, frozen=True):
    """One action for one agent, and where it stands in what was submitted."""

    dst: str
    index: int
    fields: dict[str, Any]


def derived(*parts: str) -> str:
    """An id that follows from what was asked."""
    return str(uuid.uuid5(_IDS, "\n".join(parts)))


def read_actions(value: Any) -> list[Action]:
    """The actions of a submission, in order; a `wait` is the client's own and goes nowhere."""
    if not isinstance(value, list) or not value:
        raise BusRefused(
            "actions is a list with at least one action", code="actions_invalid", pointer="/payload/actions"
        )
    found = []
    for index, action in enumerate(value):
        kind = action.get("type") if isinstance(action, dict) else None
        if kind == "wait":
            continue
        where = f"/payload/actions/{index}"
        if kind not in ("message", "control") or not given(action.get("dst")):
            message = "an action is a message or control, and has a dst"
            raise BusRefused(message, code="actions_invalid", pointer=where)
        if kind == "message" and not given(action.get("text")):
            raise BusRefused("a message has a text", code="actions_invalid", pointer=f"{where}/text")
        command = "new" if action.get("command") == "new_session" else action.get("command")
        if kind == "control" and command not in COMMANDS_OF_CONTROL:
            message = f"command is one of {', '.join(COMMANDS_OF_CONTROL)}"
            raise BusRefused(message, code="actions_invalid", pointer=f"{where}/command")
        fields = {**action, "command": command} if kind == "control" else dict(action)
        found.append(Action(str(given(action["dst"])), index, fields))
    return found


def for_v1(parcel: Parcel) -> bytes:
    """A message as a v1 agent reads it: fields of `codex` also by the names of v1."""
    if parcel.type != MESSAGE:
        return as_v1(parcel.line)
    envelope = orjson.loads(parcel.line)
    payload = envelope.get("payload")
    if not isinstance(payload, dict):
        payload = {"text": text_of(payload)}
    found = payload.get(META)
    codex = found if isinstance(found, dict) else {}
    named = {new: codex[old] for old, new in NAMES.items() if old in codex}
    kind = {"kind": codex["kind"]} if "kind" in codex else {}
    envelope = {**envelope, "v": VERSION_1, "payload": {**named, **kind, "text": text_of(payload), **payload}}
    if given(codex.get("sender_name")) and "meta" not in envelope:
        envelope["meta"] = {"weave": {"origin_src_name": codex["sender_name"]}}
    return orjson.dumps(envelope) + b"\n"


def as_v1(line: bytes) -> bytes:
    """A line of the bus with the version of v1; nothing else of it differs."""
    return line.replace(b'"v":0', b'"v":1', 1)


def for_v0(parcel: Parcel) -> bytes:
    """What a v1 agent sent as one message of v0."""
    if parcel.type == MESSAGE:
        return parcel.line.replace(b'"v":1', b'"v":0', 1)
    envelope = orjson.loads(parcel.line)
    payload = envelope.get("payload") if isinstance(envelope.get("payload"), dict) else {}
    if parcel.type == "action.submit":
        actions = payload.get("actions") or []
        body = {"text": action_text(actions), META: context_of(actions, payload.get("context"))}
    elif parcel.type == "message.created":
        body = {"text": text_of(payload), META: codex_of(payload, envelope.get("meta"))}
    else:
        words = [str(payload[name]) for name in _TOLD if payload.get(name)]
        body = {"text": f"{parcel.type} {' '.join(words)}".strip(), META: {"kind": "system"}}
    kept = {name: envelope[name] for name in ("id", "ts", "src", "dst", "session", "corr", "ack") if name in envelope}
    return orjson.dumps({"v": 0, "type": MESSAGE, **kept, "payload": {**body, "weave": payload}}) + b"\n"
