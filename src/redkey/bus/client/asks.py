"""Every request a client can make, and what its answer means."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from redkey.bus.client.core import Ask, Envelope
from redkey.bus.envelope import USER
from redkey.bus.runtime.events import Message, payload_of

# How commands that no agent sends name their source.
ANONYMOUS = "redkey-cli"
# The session that is created on first use.
MAIN = "main"


class SessionInfo(msgspec.Struct, frozen=True):
    """A session."""

    id: str
    name: str | None = None
    status: str = "open"
    policy: str = "open"
    created_at: str = ""
    updated_at: str = ""


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent of a session."""

    id: str
    name: str | None = None
    lead: bool = False
    status: str | None = None
    online: bool = False


class Delivery(msgspec.Struct, frozen=True):
    """How far a message has come to one agent."""

    agent_id: str
    state: Literal["waiting", "delivered", "acknowledged"]


def sessions() -> Ask[list[SessionInfo]]:
    return Ask("session.list", lambda answer: msgspec.convert(answer["payload"]["sessions"], list[SessionInfo]))


def create_session(name: str | None) -> Ask[str]:
    # Sent again it would make a second session. Sessions of RedKey's own clients are guarded.
    payload = {"name": name, "policy": "guarded"} if name else {"policy": "guarded"}
    return Ask("session.create", lambda answer: str(answer["session"]), {"payload": payload}, again=False)


def open_session(name: str) -> Ask[str]:
    payload = {"name": name, "policy": "guarded", "reuse": True}
    return Ask("session.create", lambda answer: str(answer["session"]), {"payload": payload})


def close_session(session: str) -> Ask[None]:
    return Ask("session.close", _nothing, {"session": session}, again=False)


def agents(session: str) -> Ask[list[AgentInfo]]:
    return Ask("agent.list", lambda answer: _agents(answer), {"session": session})


def _agents(answer: Envelope) -> list[AgentInfo]:
    return msgspec.convert(answer["payload"]["agents"], list[AgentInfo])


def join(session: str, agent: str, name: str | None) -> Ask[None]:
    payload = {"id": agent, "name": name} if name else {"id": agent}
    return Ask("agent.add", _nothing, {"session": session, "payload": payload})


def rename(session: str, agent: str, name: str) -> Ask[None]:
    return Ask("agent.update", _nothing, {"session": session, "payload": {"id": agent, "name": name}})


def leave(session: str, agent: str) -> Ask[None]:
    return Ask("agent.remove", _nothing, {"session": session, "payload": {"id": agent}}, again=False)


def remove(session: str, agent: str) -> Ask[None]:
    fields = {"session": session, "payload": {"id": agent}}
    return Ask("agent.remove", _nothing, fields, again=False, src=USER)


def progress(message: Message) -> Ask[list[Delivery]]:
    def read(answer: Envelope) -> list[Delivery]:
        return msgspec.convert(answer["payload"]["message"]["deliveries"], list[Delivery])

    return Ask("message.get", read, {"session": message.session_id, "payload": {"id": message.id}})


def send(message: Message, ack: dict[str, Any] | None, *, to_all: bool = False) -> Ask[None]:
    """A message with its own id: sent again it is the same message."""
    fields = {
        "session": message.session_id,
        "dst": message.dst,
        "topic": "agents" if to_all else None,
        "payload": payload_of(message),
        "ack": ack,
    }
    return Ask("message.send", _nothing, fields)


def history(session: str, limit: int) -> Ask[list[Envelope]]:
    payload = {"limit": limit} if limit > 0 else None
    return Ask(
        "events.history", lambda answer: list(answer["payload"]["records"]), {"session": session, "payload": payload}
    )


def stream(session: str, *, follow: bool, after: int) -> Ask[None]:
    payload = {"follow": follow, "after": after}
    return Ask("events.stream", _nothing, {"session": session, "payload": payload}, again=False)


def _nothing(answer: Envelope) -> None:
    return None
