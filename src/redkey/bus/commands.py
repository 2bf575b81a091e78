"""The table of commands, and those of protocol v0 for sessions and agents.

Each command translates an envelope into calls of the bus.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from redkey.bus import message_commands
from redkey.bus.actions import Weave1
from redkey.bus.command_fields import (
    check_speaker,
    check_stream,
    check_user,
    count_field,
    flag_field,
    open_session_of,
    own_id,
    session_id_of,
    status_field,
    text_field,
)
from redkey.bus.connection import BusConnection
from redkey.bus.envelope import USER, Envelope, agent_id, display_name
from redkey.bus.model import POLICIES, SessionState
from redkey.bus.streams import SessionStream
from redkey.bus.views import show_session
from redkey.errors import BusRefused

Command = Callable[[BusConnection, Envelope], None]
_SESSIONS = 1000


def session_list(connection: BusConnection, request: Envelope) -> None:
    """List sessions by id: the open ones, those of a `status`, or all."""
    fields = request.fields()
    status = fields.get("status", "open")
    if status not in ("open", "closed", "all"):
        raise BusRefused("status must be open, closed or all", code="payload_invalid", pointer="/payload/status")
    limit = min(count_field(request, "limit", default=_SESSIONS), _SESSIONS)
    after = text_field(request, "after") or ""
    sessions = connection.bus.sessions(connection.workspace, after, limit, None if status == "all" else status)
    connection.reply(request, {"sessions": [show_session(session) for session in sessions]})


def session_get(connection: BusConnection, request: Envelope) -> None:
    """Show a session, open or closed."""
    session = connection.bus.session(session_id_of(connection, request))
    connection.reply(request, {"session": show_session(session)}, session=session.id)


def session_create(connection: BusConnection, request: Envelope) -> None:
    """Create a session, or return the one with this id (or, with `reuse`, with this name)."""
    fields, bus = request.fields(), connection.bus
    name, key, policy = display_name(fields.get("name")), text_field(request, "id"), fields.get("policy", "open")
    if policy not in POLICIES:
        raise BusRefused(
            f"policy must be one of {', '.join(POLICIES)}", code="policy_invalid", pointer="/payload/policy"
        )
    existing = bus.session_of_id(key, connection.workspace) if key is not None else None
    if key is None and flag_field(request, "reuse"):
        existing = bus.open_session_named(name, connection.workspace)
    if existing is not None:
        bus.settled(connection.done(request, {"session": show_session(existing)}, session=existing.id))
        return
    created: list[SessionState] = []

    def done(refused: BusRefused | None) -> None:
        connection.done(request, {"session": show_session(created[0])}, session=created[0].id)(refused)

    workspace = connection.workspace
    created.append(bus.create_session(request.src, name, done, session_id=key, workspace=workspace, policy=policy))


def session_close(connection: BusConnection, request: Envelope) -> None:
    """Close a session; closing it again changes nothing."""
    bus, session = connection.bus, connection.bus.session(session_id_of(connection, request))
    if session.status == "closed":
        bus.settled(connection.done(request, {"session": show_session(session)}))
        return

    def done(refused: BusRefused | None) -> None:
        connection.done(request, {"session": show_session(session)})(refused)

    session = bus.close_session(session.key, request.src, done)


def sessions_stream(connection: BusConnection, request: Envelope) -> None:
    """Follow the sessions that are created and closed, from a position on."""
    check_stream(connection, request)
    stream = SessionStream(connection, request, count_field(request, "after"), follow=flag_field(request, "follow"))
    connection.reply(request)
    stream.begin()


def agent_list(connection: BusConnection, request: Envelope) -> None:
    """List the agents of a session in its order."""
    session = open_session_of(connection, request)
    if not session.agents:
        connection.reply_raw(request, b'{"agents":[]}')
        return
    agents = [connection.bus.show_agent(session, agent) for agent in session.agents.values()]
    # On the socket, fields without a value are left out.
    shown = [{name: part for name, part in agent.items() if part is not None} for agent in agents]
    connection.reply_raw(request, b'{"agents":%b}' % orjson.dumps(shown))


def agent_add(connection: BusConnection, request: Envelope) -> None:
    """Add an agent and bind it to this connection."""
    session, fields = open_session_of(connection, request), request.fields()
    key = own_id(request, agent_id(fields.get("id")))
    name, lead, status = display_name(fields.get("name")), flag_field(request, "lead"), status_field(request)
    done = connection.done(request, session=session.id)
    connection.bus.add_agent(session.key, key, name, done, member=connection, lead=lead, status=status)
    connection.agents.add((session.key, key))


def agent_update(connection: BusConnection, request: Envelope) -> None:
    """Change the sender's own name, status or lead."""
    session, fields = open_session_of(connection, request), request.fields()
    key = own_id(request, agent_id(fields.get("id")))
    check_speaker(connection, session, key)
    _change(connection, request, session, key, None)


def agent_change(connection: BusConnection, request: Envelope) -> None:
    """Change any agent; only the person at this machine (`user`) may."""
    session, key = open_session_of(connection, request), agent_id(request.fields().get("id"))
    check_user(request)
    speaks = connection.bus.speaker(session, key) is not None
    _change(connection, request, session, key, USER if speaks else None)


def _change(connection: BusConnection, request: Envelope, session: SessionState, key: str, src: str | None) -> None:
    fields = request.fields()
    name, status = display_name(fields.get("name")), status_field(request)
    lead = flag_field(request, "lead") if "lead" in fields else None
    if name is None and ("name" in fields or (status is None and lead is None)):
        raise BusRefused("name must not be blank", code="name_blank", pointer="/payload/name")
    actor = connection if src is None else None
    done = connection.done(request)
    connection.bus.update_agent(session.key, key, done, actor=actor, src=src, name=name, lead=lead, status=status)


def agent_order(connection: BusConnection, request: Envelope) -> None:
    """Put the agents of a session in the given order; only `user` may."""
    session, keys = open_session_of(connection, request), request.fields().get("agent_ids")
    check_user(request)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise BusRefused("agent_ids must be a list of ids", code="payload_invalid", pointer="/payload/agent_ids")
    connection.bus.order_agents(session.key, USER, keys, connection.done(request))


def agent_remove(connection: BusConnection, request: Envelope) -> None:
    """Remove the sender itself, or any agent if the sender is the person at this machine (`user`)."""
    session, key = open_session_of(connection, request), agent_id(request.fields().get("id"))
    if request.src == USER:
        src = USER if connection.bus.speaker(session, key) is not None else None
        connection.bus.remove_agent(session.key, key, connection.done(request), src=src)
        return
    check_speaker(connection, session, own_id(request, key))
    connection.bus.remove_agent(session.key, key, connection.done(request), actor=connection)
    connection.agents.discard((session.key, key))


COMMANDS: dict[str, Command] = {
    "session.list": session_list,
    "session.get": session_get,
    "session.create": session_create,
    "session.close": session_close,
    "sessions.stream": sessions_stream,
    "agent.list": agent_list,
    "agent.add": agent_add,
    "agent.update": agent_update,
    "agent.change": agent_change,
    "agent.order": agent_order,
    "agent.remove": agent_remove,
    "message.send": message_commands.message_send,
    "message.get": message_commands.message_get,
    "message.list": message_commands.message_list,
    "message.ack": message_commands.message_ack,
    "events.history": message_commands.events_history,
    "events.stream": message_commands.events_stream,
}


def _admit(connection: BusConnection, request: Envelope) -> SessionState:
    session = open_session_of(connection, request)
    check_speaker(connection, session, request.src)
    return session


_newer = Weave1(_admit)
COMMANDS |= {
    "action.submit": _newer.action_submit,
    "action.result": _newer.carried,
    "message.created": _newer.carried,
    "task.updated": _newer.carried,
    "task.done": _newer.carried,
    "relay.submit": _newer.relay_submit,
}


# The payload fields that each command reads; the parity table is generated from these.
FIELDS: dict[str, tuple[str, ...]] = {
    "session.list": ("status", "after", "limit"),
    "session.get": (),
    "session.create": ("id", "name", "policy", "reuse"),
    "session.close": (),
    "sessions.stream": ("after", "follow"),
    "agent.list": (),
    "agent.add": ("id", "name", "lead", "status"),
    "agent.update": ("id", "name", "lead", "status"),
    "agent.change": ("id", "name", "lead", "status"),
    "agent.order": ("agent_ids",),
    "agent.remove": ("id",),
    "message.send": ("text",),
    "message.get": ("id",),
    "message.list": ("agent", "limit", "after", "wait"),
    "message.ack": ("acked",),
    "events.history": ("limit", "after", "before", "wait"),
    "events.stream": ("after", "follow"),
}


def run(connection: BusConnection, request: Envelope) -> None:
    """Run the command of an envelope; raise BusRefused if it cannot be done."""
    command = COMMANDS.get(request.type)
    if command is None:
        raise BusRefused(f"{request.type[:64]!r} is not a command", code="unknown_command", pointer="/type")
    command(connection, request)
