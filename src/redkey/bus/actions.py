"""The commands that Weave v1 adds: actions, their results, task events and relays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from redkey.bus.connection import Connection
from redkey.bus.envelope import Ack, Envelope
from redkey.bus.state import Session
from redkey.bus.weave1 import VERSION_1, Action, derived, read_actions
from redkey.errors import BusRefused

# How a command finds its session and checks who asks; `commands` brings both.
Admit = Callable[[Connection, Envelope], Session]
_ONCE = Ack("none")


class Weave1:
    """Each command a few lines between an envelope and the bus."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit

    def action_submit(self, connection: Connection, asked: Envelope) -> None:
        """Carry the actions of a group to their agents: one envelope each, in the order they have."""
        session, fields = self._admit(connection, asked), asked.fields()
        group = _text(fields, "group_id") or asked.id
        sent, failures = 0, []
        for dst, actions in _by_target(session, read_actions(fields.get("actions"))).items():
            key = _target(session, dst)
            payload = {"group_id": group, "actions": [_settled(action, key, group) for action in actions]}
            payload |= {name: fields[name] for name in ("context", "task_id") if name in fields}
            failure = self._send(connection, session, asked, key, derived(session.id, group, dst), payload)
            sent += failure is None
            failures += [failure] if failure is not None else []
        status = "accepted" if sent else "rejected"
        answer = {"group_id": group, "status": status, "target_count": sent, "failures": failures}
        connection.bus.settled(connection.done(asked, answer))

    def carried(self, connection: Connection, asked: Envelope) -> None:
        """Carry a result or a task event: to its agent, or to everybody who is connected."""
        session = self._admit(connection, asked)
        if asked.type == "message.created" and (asked.payload_ref or not _text(asked.fields(), "text")):
            raise BusRefused(
                "message.created has a text, and no payload_ref", code="payload_invalid", pointer="/payload"
            )
        if asked.dst is None and asked.topic is None:
            connection.bus.announce(session, asked, connection.done(asked), actor=connection)
            return
        envelope = msgspec.structs.replace(asked, dst=_target(session, asked.dst), ack=asked.ack or _ONCE)
        connection.bus.send(session.key, envelope, connection.done(asked, {"message_id": asked.id}))

    def relay_submit(self, connection: Connection, asked: Envelope) -> None:
        """Carry a relay's actions, with ids that the bus gives, or end the relay."""
        session, fields = self._admit(connection, asked), asked.fields()
        relay = _text(fields, "relay_id")
        if relay is None:
            raise BusRefused("a relay has an id", code="relay_invalid", pointer="/payload/relay_id")
        connection.bus.own(session, relay, asked.src)
        done = fields.get("done")
        if done is not None:
            self._end_relay(connection, session, asked, relay, done)
            return
        named = fields.get("targets")
        targets = {_target(session, one) for one in named if isinstance(one, str)} if isinstance(named, list) else set()
        shown: dict[str, Any] = {}
        failures: list[dict[str, Any]] = []
        for dst, actions in _by_target(session, read_actions(fields.get("actions"))).items():
            key = _target(session, dst)
            if key not in targets:
                failures.append({"dst": dst, "code": "outside_targets", "message": "not a target of this relay"})
                continue
            ids = {name: derived(session.id, relay, key, name) for name in ("context_id", "task_id")}
            group = derived(session.id, relay, key, asked.id)
            settled = [_settled(action, key, group) for action in actions]
            context = {"context_id": ids["context_id"], "owner_id": asked.src}
            payload = {"group_id": group, "actions": settled, "context": context, "task_id": ids["task_id"]}
            failure = self._send(connection, session, asked, key, group, payload)
            if failure is not None:
                failures.append(failure)
                continue
            shown[key] = {**ids, "group_id": group, "actions": [_told(action) for action in settled]}
        answer = {
            "relay_id": relay,
            "status": "accepted" if shown else "rejected",
            "action_count": sum(len(one["actions"]) for one in shown.values()),
            "target_count": len(shown),
            "failures": failures,
            "targets": shown,
        }
        accepted = msgspec.structs.replace(asked, type="relay.accepted")
        connection.bus.settled(connection.done(accepted, answer))

    def _end_relay(self, connection: Connection, session: Session, asked: Envelope, relay: str, done: Any) -> None:
        summary = _text(done, "summary") if isinstance(done, dict) else None
        payload = {"relay_id": relay, **({"summary": summary} if summary else {})}
        ended = msgspec.structs.replace(asked, type="relay.done", payload=payload)
        accepted = msgspec.structs.replace(asked, type="relay.accepted")
        answer = {**payload, "status": "completed", "action_count": 0, "target_count": 0, "failures": [], "targets": {}}
        connection.bus.announce(session, ended, connection.done(accepted, answer))

    def _send(
        self, connection: Connection, session: Session, asked: Envelope, dst: str, key: str, payload: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Send the actions for one agent; why not, when they cannot be sent."""
        envelope = msgspec.structs.replace(
            asked,
            v=VERSION_1,
            type="action.submit",
            id=key,
            dst=dst,
            topic=None,
            payload=payload,
            ack=asked.ack or _ONCE,
        )
        try:
            connection.bus.send(session.key, envelope, lambda _: None)
        except BusRefused as refused:
            return {"dst": dst, "code": refused.code, "message": refused.message}
        return None


def _by_target(session: Session, actions: list[Action]) -> dict[str, list[Action]]:
    found: dict[str, list[Action]] = {}
    for action in actions:
        found.setdefault(_target(session, action.dst), []).append(action)
    return found


def _target(session: Session, name: Any) -> str:
    """An agent by its id or name; an unknown name stays, and is refused where it is sent to."""
    text = str(name or "").lstrip("#")
    if text in session.agents:
        return text
    matches = [agent.id for agent in session.agents.values() if (agent.name or "").casefold() == text.casefold()]
    return matches[0] if len(matches) == 1 else text


def _settled(action: Action, dst: str, group: str) -> dict[str, Any]:
    """An action as its agent gets it: addressed by id, with its own id and place."""
    fields = {**action.fields, "dst": dst}
    fields.setdefault("action_id", derived(group, str(action.index)))
    fields.setdefault("action_index", action.index)
    if fields["type"] == "message":
        fields.setdefault("kind", "user")
        if fields.get("expects_reply") is False:
            fields.setdefault("reply_policy", "none")
    return fields


def _told(action: dict[str, Any]) -> dict[str, Any]:
    names = ("action_id", "action_index", "type", "plan_step_id", "expects_reply", "command")
    return {name: action[name] for name in names if name in action}


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None
