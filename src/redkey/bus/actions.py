"""The commands that Weave v1 adds: actions, their results, task events and relays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from redkey.bus.connection import BusConnection
from redkey.bus.envelope import BUS, Ack, Envelope
from redkey.bus.model import SessionState
from redkey.bus.weave1 import VERSION_1, Action, derived, read_actions, with_sender_name
from redkey.errors import BusRefused

# Find the session of a command and check its sender; `commands` supplies this.
Admit = Callable[[BusConnection, Envelope], SessionState]
_ONCE = Ack("none")
Fields = dict[str, Any]


class Weave1:
    """The v1 commands. Each one translates an envelope into calls of the bus."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit

    def action_submit(self, connection: BusConnection, request: Envelope) -> None:
        """Send the actions of a group to their agents: one envelope for each agent, actions in their order."""
        session, fields = self._admit(connection, request), request.fields()
        group = _text(fields, "group_id") or request.id
        sent, failures = 0, []
        for dst, actions in _by_target(session, read_actions(fields.get("actions"))).items():
            key = _target(session, dst)
            payload = {"group_id": group, "actions": [_complete(action, key, group) for action in actions]}
            payload |= {name: fields[name] for name in ("context", "task_id") if name in fields}
            failure = self._send(connection, session, request, key, derived(session.id, group, dst), payload)
            sent += failure is None
            failures += [failure] if failure is not None else []
        status = "accepted" if sent else "rejected"
        answer = {"group_id": group, "status": status, "target_count": sent, "failures": failures}
        connection.bus.settled(connection.done(request, answer))

    def carried(self, connection: BusConnection, request: Envelope) -> None:
        """Send a result or a task event to its agent, or without a destination to every connected agent."""
        session = self._admit(connection, request)
        if request.type == "message.created" and (request.payload_ref or not _text(request.fields(), "text")):
            raise BusRefused(
                "message.created needs payload.text and takes no payload_ref",
                code="payload_invalid",
                pointer="/payload",
            )
        request = with_sender_name(session, request)
        if request.dst is None and request.topic is None:
            connection.bus.announce(session, request, connection.done(request), actor=connection)
            return
        envelope = msgspec.structs.replace(request, dst=_target(session, request.dst), ack=request.ack or _ONCE)
        connection.bus.send(session.key, envelope, connection.done(request, {"message_id": request.id}))

    def relay_submit(self, connection: BusConnection, request: Envelope) -> None:
        """Send the actions of a relay, with ids assigned by the bus, or end the relay."""
        session, fields = self._admit(connection, request), request.fields()
        relay = _text(fields, "relay_id")
        if relay is None:
            raise BusRefused("a relay needs an id: payload.relay_id", code="relay_invalid", pointer="/payload/relay_id")
        connection.bus.own(session, relay, request.src)
        done = fields.get("done")
        if done is not None:
            self._end_relay(connection, session, request, relay, done)
            return
        listed = fields.get("targets")
        targets = (
            {_target(session, name) for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
        )
        shown: dict[str, Any] = {}
        failures: list[dict[str, Any]] = []
        for dst, actions in _by_target(session, read_actions(fields.get("actions"))).items():
            key = _target(session, dst)
            if key not in targets:
                failures.append({"dst": dst, "code": "outside_targets", "message": "not a target of this relay"})
                continue
            ids = {name: derived(session.id, relay, key, name) for name in ("context_id", "task_id")}
            group = derived(session.id, relay, key, request.id)
            completed = [_complete(action, key, group) for action in actions]
            context = {"context_id": ids["context_id"], "owner_id": request.src}
            payload = {"group_id": group, "actions": completed, "context": context, "task_id": ids["task_id"]}
            failure = self._send(connection, session, request, key, group, payload)
            if failure is not None:
                failures.append(failure)
                continue
            shown[key] = {**ids, "group_id": group, "actions": [_summary(action) for action in completed]}
        answer = {
            "relay_id": relay,
            "status": "accepted" if shown else "rejected",
            "action_count": sum(len(target["actions"]) for target in shown.values()),
            "target_count": len(shown),
            "failures": failures,
            "targets": shown,
        }
        accepted = msgspec.structs.replace(request, type="relay.accepted")
        connection.bus.settled(connection.done(accepted, answer))

    def _end_relay(
        self, connection: BusConnection, session: SessionState, request: Envelope, relay: str, done: Any
    ) -> None:
        summary = _text(done, "summary") if isinstance(done, dict) else None
        payload = {"relay_id": relay, **({"summary": summary} if summary else {})}
        # Only this message ends the relay for its owner, so it is delivered like every message to one agent.
        ended = Envelope(
            v=VERSION_1,
            type="relay.done",
            id=derived(session.id, relay, request.id, "done"),
            ts=connection.bus.now(),
            src=BUS,
            dst=request.src,
            payload=payload,
            ack=_ONCE,
        )
        accepted = msgspec.structs.replace(request, type="relay.accepted")
        answer = {**payload, "status": "completed", "action_count": 0, "target_count": 0, "failures": [], "targets": {}}
        connection.bus.send(session.key, ended, connection.done(accepted, answer))

    def _send(
        self, connection: BusConnection, session: SessionState, request: Envelope, dst: str, key: str, payload: Fields
    ) -> Fields | None:
        """Send the actions for one agent; return the failure if the bus refuses them."""
        envelope = msgspec.structs.replace(
            with_sender_name(session, request),
            v=VERSION_1,
            type="action.submit",
            id=key,
            dst=dst,
            topic=None,
            payload=payload,
            ack=request.ack or _ONCE,
        )
        try:
            connection.bus.send(session.key, envelope, lambda _: None)
        except BusRefused as refused:
            return {"dst": dst, "code": refused.code, "message": refused.message}
        return None


def _by_target(session: SessionState, actions: list[Action]) -> dict[str, list[Action]]:
    by_target: dict[str, list[Action]] = {}
    for action in actions:
        by_target.setdefault(_target(session, action.dst), []).append(action)
    return by_target


def _target(session: SessionState, name: Any) -> str:
    """Resolve an id or name to an agent id; an unknown name is returned as it is and refused on sending."""
    text = str(name or "").lstrip("#")
    if text in session.agents:
        return text
    matches = [agent.id for agent in session.agents.values() if (agent.name or "").casefold() == text.casefold()]
    return matches[0] if len(matches) == 1 else text


def _complete(action: Action, dst: str, group: str) -> dict[str, Any]:
    """Complete an action for its agent: addressed by id, with an action id and its index."""
    fields = {**action.fields, "dst": dst}
    fields.setdefault("action_id", derived(group, str(action.index)))
    fields.setdefault("action_index", action.index)
    if fields["type"] == "message":
        fields.setdefault("kind", "user")
        if fields.get("expects_reply") is False:
            fields.setdefault("reply_policy", "none")
    return fields


def _summary(action: dict[str, Any]) -> dict[str, Any]:
    step = action.get("plan_step_id") or action.get("step_id")
    # Clients of different dates require one name or the other.
    steps = {"plan_step_id": step, "step_id": step} if step is not None else {}
    names = ("action_id", "action_index", "type", "expects_reply", "reply_policy", "command")
    return {**{name: action[name] for name in names if name in action}, **steps}


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None
