"""Every request that a client can send, and how to read its reply."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from redkey.bus.client.core import ClientRequest, Envelope
from redkey.bus.envelope import USER
from redkey.bus.runtime.events import Message, payload_of

# The sender of commands of clients that are no agent.
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
    """The state of a message for one agent."""

    agent_id: str
    state: Literal["waiting", "delivered", "acknowledged"]


def sessions() -> ClientRequest[list[SessionInfo]]:
    """List the open sessions."""
    return ClientRequest(
        "session.list", lambda answer: msgspec.convert(answer["payload"]["sessions"], list[SessionInfo])
    )


def create_session(name: str | None) -> ClientRequest[str]:
    """Create a guarded session."""
    # Not sent again, because that would create a second session. Sessions of RedKey's own clients are guarded.
    payload = {"name": name, "policy": "guarded"} if name else {"policy": "guarded"}
    return ClientRequest("session.create", lambda answer: str(answer["session"]), {"payload": payload}, again=False)


def open_session(name: str) -> ClientRequest[str]:
    """Return the open session with a name, or create it."""
    payload = {"name": name, "policy": "guarded", "reuse": True}
    return ClientRequest("session.create", lambda answer: str(answer["session"]), {"payload": payload})


def close_session(session: str) -> ClientRequest[None]:
    """Close a session."""
    return ClientRequest("session.close", _nothing, {"session": session}, again=False)


def agents(session: str) -> ClientRequest[list[AgentInfo]]:
    """List the agents of a session."""
    return ClientRequest("agent.list", lambda answer: _agents(answer), {"session": session})


def _agents(answer: Envelope) -> list[AgentInfo]:
    return msgspec.convert(answer["payload"]["agents"], list[AgentInfo])


def join(session: str, agent: str, name: str | None) -> ClientRequest[None]:
    """Add an agent, bound to this connection."""
    payload = {"id": agent, "name": name} if name else {"id": agent}
    return ClientRequest("agent.add", _nothing, {"session": session, "payload": payload})


def rename(session: str, agent: str, name: str) -> ClientRequest[None]:
    """Change the name of the own agent."""
    return ClientRequest("agent.update", _nothing, {"session": session, "payload": {"id": agent, "name": name}})


def leave(session: str, agent: str) -> ClientRequest[None]:
    """Remove the own agent."""
    return ClientRequest("agent.remove", _nothing, {"session": session, "payload": {"id": agent}}, again=False)


def remove(session: str, agent: str) -> ClientRequest[None]:
    """Remove any agent, as the person at this machine."""
    fields = {"session": session, "payload": {"id": agent}}
    return ClientRequest("agent.remove", _nothing, fields, again=False, src=USER)


def progress(message: Message) -> ClientRequest[list[Delivery]]:
    """Show the deliveries of a message."""

    def read(answer: Envelope) -> list[Delivery]:
        return msgspec.convert(answer["payload"]["message"]["deliveries"], list[Delivery])

    return ClientRequest("message.get", read, {"session": message.session_id, "payload": {"id": message.id}})


def send(message: Message, ack: dict[str, Any] | None, *, to_all: bool = False) -> ClientRequest[None]:
    """Send a message under its own id; sent again it is the same message."""
    fields = {
        "session": message.session_id,
        "dst": message.dst,
        "topic": "agents" if to_all else None,
        "payload": payload_of(message),
        "ack": ack,
    }
    return ClientRequest("message.send", _nothing, fields)


def history(session: str, limit: int) -> ClientRequest[list[Envelope]]:
    """List the last records of a session."""
    payload = {"limit": limit} if limit > 0 else None
    return ClientRequest(
        "events.history", lambda answer: list(answer["payload"]["records"]), {"session": session, "payload": payload}
    )


def stream(session: str, *, follow: bool, after: int) -> ClientRequest[None]:
    """Stream the records of a session."""
    payload = {"follow": follow, "after": after}
    return ClientRequest("events.stream", _nothing, {"session": session, "payload": payload}, again=False)


def _nothing(answer: Envelope) -> None:
    return None
