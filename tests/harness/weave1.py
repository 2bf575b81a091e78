"""A model of a Weave client of protocol v1: what it answers, takes, drops and confirms. It imports nothing of RedKey.

It is written from the facts known of that client, and is strict where the client is: a reply that lacks a required
field is an error, and a line that is not addressed as the client expects is dropped without a word.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

Envelope = dict[str, Any]
Count = Annotated[int, msgspec.Meta(ge=0)]
# An empty string counts as absent where the client needs one.
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Fault(msgspec.Struct):
    """The error of a reply."""

    code: str
    message: str
    detail: Any = None


class Ack(msgspec.Struct):
    """How a message is to be confirmed."""

    mode: str | None = None
    timeout_ms: Count | None = None


class Line(msgspec.Struct, kw_only=True):
    """One envelope, with the types that the client needs to read it at all."""

    v: Annotated[int, msgspec.Meta(ge=1, le=1)]
    type: str
    id: str
    ts: str
    src: str
    dst: str | None = None
    topic: str | None = None
    session: str | None = None
    seq: Count | None = None
    idempotency_key: str | None = None
    corr: str | None = None
    payload: Any = None
    payload_ref: str | None = None
    content_type: str | None = None
    size: Count | None = None
    meta: Any = None
    status: str | None = None
    error: Fault | None = None
    ack: Ack | None = None


class Named(msgspec.Struct):
    """A session or an agent in a list."""

    id: str
    name: str | None = None


class SessionList(msgspec.Struct):
    """The payload of the reply to `session.list`."""

    sessions: list[Named]


class AgentList(msgspec.Struct):
    """The payload of the reply to `agent.list`."""

    agents: list[Named]


class AcceptedAction(msgspec.Struct):
    """An action of a relay. Clients of one date require `step_id`, those of another `plan_step_id`."""

    action_id: str
    action_index: Count
    type: str
    step_id: str
    plan_step_id: str
    expects_reply: bool | None = None
    reply_policy: str | None = None
    command: str | None = None


class AcceptedTarget(msgspec.Struct):
    """What the bus assigned to one agent of a relay."""

    context_id: str | None = None
    task_id: str | None = None
    group_id: str | None = None
    actions: list[AcceptedAction] = []


class Failure(msgspec.Struct):
    """An agent that a relay did not reach."""

    dst: str
    code: str | None = None
    message: str | None = None


class RelayAccepted(msgspec.Struct):
    """The payload of the reply to `relay.submit`."""

    relay_id: str
    status: str | None = None
    retry_after_ms: Count | None = None
    action_count: Count = 0
    target_count: Count = 0
    failures: list[Failure] = []
    targets: dict[str, AcceptedTarget] = {}


class ActionResult(msgspec.Struct):
    """The payload of `action.result`."""

    group_id: Text
    action_id: Text
    action_index: Count
    status: Text
    detail: str | None = None
    data: dict[str, Any] = {}


class TaskUpdated(msgspec.Struct):
    """The payload of `task.updated`."""

    task_id: Text
    status: Text


class TaskDone(msgspec.Struct):
    """The payload of `task.done`."""

    task_id: Text
    summary: str | None = None


class RelayDone(msgspec.Struct):
    """The payload of `relay.done`."""

    relay_id: Text
    summary: str | None = None


_REPLIES = {"session.list": SessionList, "agent.list": AgentList, "relay.submit": RelayAccepted}
_EVENTS = {
    "action.result": ActionResult,
    "task.updated": TaskUpdated,
    "task.done": TaskDone,
    "relay.done": RelayDone,
}


class Receiver:
    """One client on one connection: it is given what is sent and what arrives."""

    def __init__(self) -> None:
        self.agent = self.name = ""
        self._pending: dict[str, str] = {}

    def sends(self, request: Envelope) -> None:
        """Note a request, because its answer is known by its id, and the agent's own id and name."""
        self._pending[request["id"]] = request["type"]
        if request["type"] in ("agent.add", "agent.update"):
            self.agent = request["payload"]["id"]
            self.name = request["payload"].get("name") or self.agent

    def takes(self, line: Envelope) -> tuple[list[dict[str, Any]], Envelope | None]:
        """Take a line; return what the client shows its user, and the confirmation that it sends."""
        envelope = msgspec.convert(line, Line)
        kind = self._pending.pop(envelope.corr, None) if envelope.corr is not None else None
        if kind is not None:
            self._check_reply(kind, envelope)
            return [], None
        if not self.agent or envelope.src == self.agent or envelope.session is None:
            return [], None
        heard = [{"src": envelope.src, "src_name": _src_name(envelope), **words} for words in self._read(envelope)]
        return heard, self._confirmation(envelope)

    def _check_reply(self, kind: str, envelope: Line) -> None:
        if envelope.status == "error":
            assert envelope.error is not None
            assert envelope.error.code
            return
        if kind == "session.create":
            assert envelope.session
        if kind in _REPLIES:
            msgspec.convert(envelope.payload, _REPLIES[kind])

    def _is_mine(self, envelope: Line) -> bool:
        names = (self.agent, self.name)
        if envelope.dst is not None:
            return envelope.dst in names
        return envelope.topic in [f"agent.{name}.inbox" for name in names]

    def _read(self, envelope: Line) -> Iterator[dict[str, Any]]:
        payload = envelope.payload
        if envelope.type == "action.submit":
            yield from self._read_actions(envelope)
        elif not self._is_mine(envelope):
            return
        elif envelope.type in ("message.send", "message.created"):
            text = payload if isinstance(payload, str) else payload.get("text") if isinstance(payload, dict) else None
            if isinstance(text, str):
                fields = payload if isinstance(payload, dict) else {}
                names = ("context_id", "owner_id", "parent_message_id", "task_id")
                kind = fields.get("kind") if fields.get("kind") in ("reply", "control") else "user"
                yield {"text": text, "kind": kind, **{name: fields[name] for name in names if fields.get(name)}}
        elif envelope.type in _EVENTS:
            try:
                yield {"event": envelope.type, **msgspec.to_builtins(msgspec.convert(payload, _EVENTS[envelope.type]))}
            except msgspec.ValidationError:
                return

    def _read_actions(self, envelope: Line) -> Iterator[dict[str, Any]]:
        """The actions for this agent; a message after `new` waits for the new session."""
        payload = envelope.payload if isinstance(envelope.payload, dict) else {}
        context = payload.get("context") or {}
        shared = {
            "group_id": payload.get("group_id") or envelope.id,
            "context_id": context.get("context_id") or envelope.id,
            "owner_id": context.get("owner_id") or envelope.src,
        }
        deferred = False
        for place, action in enumerate(payload.get("actions") or ()):
            if action.get("dst") not in (self.agent, self.name):
                continue
            words = {"action_id": action.get("action_id"), "action_index": action.get("action_index", place), **shared}
            if action["type"] == "control" and action.get("command") in ("new", "compact", "interrupt", "review"):
                deferred = deferred or action["command"] == "new"
                yield {**words, "command": action["command"]}
            elif action["type"] == "message" and isinstance(action.get("text"), str):
                kind = action.get("kind") or "user"
                yield {**words, "text": action["text"], "kind": kind, "deferred": deferred}

    def _confirmation(self, envelope: Line) -> Envelope | None:
        """Confirm a message that asks for it: without payload, by its `corr` if it has one."""
        automatic = envelope.ack is not None and envelope.ack.mode == "auto"
        if envelope.type != "message.send" or not automatic or not self._is_mine(envelope):
            return None
        common = {"v": 1, "type": "message.ack", "id": str(uuid.uuid4()), "ts": "2026-01-20T10:00:00Z"}
        return {**common, "src": self.agent, "session": envelope.session, "corr": envelope.corr or envelope.id}


def _src_name(envelope: Line) -> str | None:
    weave = envelope.meta.get("weave") if isinstance(envelope.meta, dict) else None
    name = weave.get("origin_src_name") if isinstance(weave, dict) else None
    return name.strip() or None if isinstance(name, str) else None
