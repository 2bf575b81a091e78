"""Normalised events: every envelope of the bus becomes one of three inputs, with all defaults filled in.

No module above this one reads envelopes. Text is found in all places where clients put it, and blank counts as absent.
An envelope that does not concern the runtime gives None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import orjson

from redkey.bus.envelope import inbox_of
from redkey.bus.runtime.weave1_fields import CARRIED, action_text, codex_of, given

Kind = Literal["user", "reply", "control", "system"]
KINDS: tuple[Kind, ...] = ("user", "reply", "control", "system")
# The key under which existing clients put the fields of the runtime.
META = "codex"
# The fields of results and events of tasks that are shown as text.
_SHOWN_FIELDS = ("action_id", "task_id", "relay_id", "status", "detail", "summary")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message with all fields of seed 002."""

    id: str
    session_id: str
    src: str
    kind: Kind
    text: str
    conversation_id: str
    conversation_owner: str
    created_at: str
    dst: str | None = None
    parent_message_id: str | None = None
    reply_to: str | None = None
    sender_name: str | None = None


class Peer(msgspec.Struct, frozen=True):
    """An agent as the runtime sees it."""

    id: str
    name: str | None = None
    lead: bool = False

    @property
    def label(self) -> str:
        """The name, else the id."""
        return self.name or self.id


class SessionUpdated(msgspec.Struct, frozen=True):
    """A session was created or closed."""

    session_id: str
    status: Literal["open", "closed"]


class AgentsUpdated(msgspec.Struct, frozen=True):
    """The agents of a session now, in the session's order."""

    session_id: str
    agents: tuple[Peer, ...]


class MessageReceived(msgspec.Struct, frozen=True):
    """A message arrived."""

    message: Message


Input = SessionUpdated | AgentsUpdated | MessageReceived


class Normaliser:
    """Turns envelopes into inputs; it keeps the list of agents, which they change."""

    def __init__(self) -> None:
        self._agents: dict[str, dict[str, Peer]] = {}

    def know(self, session_id: str, agents: list[dict[str, Any]]) -> AgentsUpdated:
        """Take over the agents of an `agent.list` reply."""
        self._agents[session_id] = {agent["id"]: _peer(agent) for agent in agents}
        return self._listed(session_id)

    def read(self, envelope: Mapping[str, Any]) -> Input | None:
        """Turn an envelope into an input; None if it does not concern the runtime."""
        event, session_id = envelope.get("type"), envelope.get("session")
        if not isinstance(session_id, str) or not session_id or not isinstance(event, str):
            return None
        if event == "message.send":
            return MessageReceived(message_of(envelope))
        if event in ("session.created", "session.closed"):
            return SessionUpdated(session_id, "open" if event == "session.created" else "closed")
        payload = envelope.get("payload")
        if event.startswith("agent.") and isinstance(payload, dict):
            return self._changed(session_id, event, payload)
        return None

    def _changed(self, session_id: str, event: str, payload: dict[str, Any]) -> AgentsUpdated | None:
        agents = self._agents.setdefault(session_id, {})
        if event == "agent.reordered":
            order = [key for key in payload.get("agent_ids", ()) if key in agents]
            self._agents[session_id] = {key: agents[key] for key in [*order, *(agents.keys() - order)]}
            return self._listed(session_id)
        key = payload.get("id")
        if not isinstance(key, str):
            return None
        if event in ("agent.created", "agent.updated"):
            agents[key] = _peer({"lead": agents[key].lead if key in agents else False, **payload})
        elif event == "agent.deleted":
            agents.pop(key, None)
        else:
            return None
        return self._listed(session_id)

    def _listed(self, session_id: str) -> AgentsUpdated:
        return AgentsUpdated(session_id, tuple(self._agents[session_id].values()))


def _peer(agent: Mapping[str, Any]) -> Peer:
    return Peer(agent["id"], given(agent.get("name")), bool(agent.get("lead", False)))


def message_of(envelope: Mapping[str, Any]) -> Message:
    """A `message.send` envelope as the message it carries."""
    payload = envelope.get("payload")
    if isinstance(payload, dict):
        payload = payload_of_v0(envelope, payload)
    codex = payload.get(META) if isinstance(payload, dict) else None
    meta: Mapping[str, Any] = codex if isinstance(codex, dict) else {}
    topic = envelope.get("topic")
    return Message(
        id=envelope["id"],
        session_id=envelope["session"],
        src=envelope["src"],
        dst=given(envelope.get("dst")) or (inbox_of(topic) if isinstance(topic, str) else None),
        kind=kind_of(meta.get("kind")),
        text=text_of(payload),
        conversation_id=given(meta.get("conversation_id")) or envelope["id"],
        conversation_owner=given(meta.get("conversation_owner")) or envelope["src"],
        parent_message_id=given(meta.get("parent_message_id")),
        reply_to=given(meta.get("reply_to")),
        sender_name=given(meta.get("sender_name")),
        created_at=envelope["ts"],
    )


def payload_of_v0(envelope: Mapping[str, Any], payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a message with its text and conversation where v0 has them.

    Results and events of tasks are system messages: they inform, and begin no conversation.
    """
    event, meta = envelope.get("type"), envelope.get("meta")
    if event not in CARRIED:
        codex = codex_of(payload, meta) if envelope.get("v") and META not in payload else {}
        return {**payload, META: codex} if codex else payload
    if event == "action.submit":
        actions = [action for action in payload.get("actions") or () if isinstance(action, dict)]
        context = payload.get("context")
        kind = next((action.get("kind") for action in actions if action.get("type") == "message"), "control")
        codex = codex_of({**(context if isinstance(context, dict) else {}), "kind": kind}, meta)
        return {"text": action_text(actions), META: codex}
    if event == "message.created":
        return {"text": text_of(payload), META: codex_of(payload, meta)}
    words = [str(payload[name]) for name in _SHOWN_FIELDS if payload.get(name)]
    return {"text": f"{event} {' '.join(words)}".strip(), META: {**codex_of({}, meta), "kind": "system"}}


def payload_of(message: Message) -> dict[str, Any]:
    """Give the payload of a message; fields without a value are left out."""
    meta = {
        "sender_name": message.sender_name,
        "kind": message.kind if message.kind != "user" else None,
        "conversation_id": message.conversation_id,
        "conversation_owner": message.conversation_owner,
        "parent_message_id": message.parent_message_id,
        "reply_to": message.reply_to,
    }
    return {"text": message.text, META: {name: value for name, value in meta.items() if value is not None}}


def text_of(payload: Any) -> str:
    """Find the text of a payload: itself, its text, its input's text, or all of it as JSON."""
    if isinstance(payload, str):
        return payload
    if isinstance(payload, dict):
        inner = payload.get("input")
        for text in (payload.get("text"), inner.get("text") if isinstance(inner, dict) else None):
            if isinstance(text, str) and text.strip():
                return text
    return orjson.dumps(payload).decode()


def kind_of(value: Any) -> Kind:
    """Read a kind in any case; absent or unknown means user."""
    text = value.strip().lower() if isinstance(value, str) else ""
    return next((kind for kind in KINDS if kind == text), "user")
