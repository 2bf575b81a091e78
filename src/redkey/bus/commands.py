"""The commands of protocol v0, each a few lines between an envelope and the bus."""

from __future__ import annotations

from collections.abc import Callable

from redkey.bus.connection import Connection
from redkey.bus.envelope import USER, Envelope, agent_id, display_name
from redkey.bus.shown import show_message
from redkey.bus.state import POLICIES, Session
from redkey.bus.streams import RecordStream
from redkey.errors import BusRefused

Command = Callable[[Connection, Envelope], None]
_HISTORY = 500
# How many streams one connection may follow at once.
_STREAMS = 64


def session_list(connection: Connection, asked: Envelope) -> None:
    # Existing clients want a name that is text.
    sessions = [{**one.as_json(), "name": one.name or ""} for one in connection.bus.open_sessions()]
    connection.reply(asked, {"sessions": sessions})


def session_create(connection: Connection, asked: Envelope) -> None:
    fields = asked.fields()
    name, policy = display_name(fields.get("name")), fields.get("policy", "open")
    if policy not in POLICIES:
        raise BusRefused(f"policy is one of {', '.join(POLICIES)}", code="policy_invalid", pointer="/payload/policy")
    reuse = fields.get("reuse", False)
    if not isinstance(reuse, bool):
        raise BusRefused("reuse is true or false", code="payload_invalid", pointer="/payload/reuse")
    found = connection.bus.open_session_named(name, connection.workspace) if reuse else None
    if found is not None:
        connection.bus.settled(connection.done(asked, session=found.id))
        return
    made: list[Session] = []

    def done(refused: BusRefused | None) -> None:
        connection.done(asked, session=made[0].id)(refused)

    made.append(connection.bus.create_session(asked.src, name, done, workspace=connection.workspace, policy=policy))


def session_close(connection: Connection, asked: Envelope) -> None:
    connection.bus.close_session(_session(connection, asked).id, asked.src, connection.done(asked))


def agent_list(connection: Connection, asked: Envelope) -> None:
    session = _session(connection, asked)
    agents = [connection.bus.show_agent(session, agent) for agent in session.agents.values()]
    # What has no value is left out on the socket.
    shown = [{name: part for name, part in one.items() if part is not None} for one in agents]
    connection.reply(asked, {"agents": shown})


def agent_add(connection: Connection, asked: Envelope) -> None:
    session, fields = _session(connection, asked), asked.fields()
    key = _own(asked, agent_id(fields.get("id")))
    name = display_name(fields.get("name"))
    connection.bus.add_agent(session.id, key, name, connection.done(asked, session=session.id), member=connection)
    connection.agents.add((session.id, key))


def agent_update(connection: Connection, asked: Envelope) -> None:
    session, fields = _session(connection, asked), asked.fields()
    key = _own(asked, agent_id(fields.get("id")))
    name = display_name(fields.get("name"))
    if name is None:
        raise BusRefused("a name must not be blank", code="name_blank", pointer="/payload/name")
    _check_speaker(connection, session, key)
    connection.bus.update_agent(session.id, key, connection.done(asked), actor=connection, name=name)


def agent_remove(connection: Connection, asked: Envelope) -> None:
    """Remove an agent: itself, or any one when it is the person at this machine (`user`) who asks."""
    session, key = _session(connection, asked), agent_id(asked.fields().get("id"))
    if asked.src == USER:
        connection.bus.remove_agent(session.id, key, connection.done(asked), src=USER)
        return
    _check_speaker(connection, session, _own(asked, key))
    connection.bus.remove_agent(session.id, key, connection.done(asked), actor=connection)
    connection.agents.discard((session.id, key))


def message_send(connection: Connection, asked: Envelope) -> None:
    session = _session(connection, asked)
    _check_speaker(connection, session, asked.src)
    connection.bus.send(session.id, asked, connection.done(asked, {"message_id": asked.id}))


def message_get(connection: Connection, asked: Envelope) -> None:
    """One message of a session, and how far it has come."""
    session, key = connection.bus.session(_session_id(connection, asked)), asked.fields().get("id")
    if not isinstance(key, str):
        raise BusRefused("name a message: payload.id", code="payload_invalid", pointer="/payload/id")
    connection.reply(asked, {"message": show_message(connection.bus, session, key)})


def message_ack(connection: Connection, asked: Envelope) -> None:
    """Confirm a message. Nobody waits for an answer to this, so only a refusal gets one."""
    session = _session(connection, asked)
    _check_speaker(connection, session, asked.src)
    acked = asked.fields().get("acked", asked.corr)
    if not isinstance(acked, str):
        raise BusRefused("an ack names a message: payload.acked, or corr", code="ack_invalid", pointer="/payload/acked")
    connection.bus.confirm(session.id, asked.src, acked)


def events_history(connection: Connection, asked: Envelope) -> None:
    session, limits = connection.bus.session(_session_id(connection, asked)), connection.bus.limits
    limit = _whole(asked, "limit", default=_HISTORY) or _HISTORY
    before = _whole(asked, "before", default=1 << 39)
    records = connection.bus.feed(session).before(before, min(limit, limits.history), limits.history_bytes)
    line = b",".join([record.line for record in records])
    connection.reply_raw(asked, b'{"records":[%s]}' % line)


def events_stream(connection: Connection, asked: Envelope) -> None:
    session = connection.bus.session(_session_id(connection, asked))
    follow = asked.fields().get("follow", False)
    if not isinstance(follow, bool):
        raise BusRefused("follow is true or false", code="payload_invalid", pointer="/payload/follow")
    if asked.id in connection.streams:
        raise BusRefused("a stream of this id is being followed", code="id_reused", pointer="/id")
    if len(connection.streams) >= _STREAMS:
        raise BusRefused(f"a connection follows at most {_STREAMS} streams", code="too_many_streams")
    stream = RecordStream(connection, connection.bus.feed(session), asked, _whole(asked, "after"), follow=follow)
    connection.reply(asked, session=session.id)
    stream.begin()


COMMANDS: dict[str, Command] = {
    "session.list": session_list,
    "session.create": session_create,
    "session.close": session_close,
    "agent.list": agent_list,
    "agent.add": agent_add,
    "agent.update": agent_update,
    "agent.remove": agent_remove,
    "message.send": message_send,
    "message.get": message_get,
    "message.ack": message_ack,
    "events.history": events_history,
    "events.stream": events_stream,
}


def run(connection: Connection, asked: Envelope) -> None:
    """Do what an envelope asks for; BusRefused when it cannot be done."""
    command = COMMANDS.get(asked.type)
    if command is None:
        raise BusRefused(f"{asked.type[:64]!r} is not a command", code="unknown_command", pointer="/type")
    command(connection, asked)


def _session_id(connection: Connection, asked: Envelope) -> str:
    """The session a command is about: the one it names, or that of the socket it came by."""
    bound = connection.bound_session
    named = asked.session or bound
    if named is None:
        raise BusRefused("this command names a session", code="session_missing", pointer="/session")
    if bound is not None and named != bound:
        raise BusRefused("this socket is another session's", code="session_mismatch", pointer="/session")
    return named


def _session(connection: Connection, asked: Envelope) -> Session:
    return connection.bus.open_session(_session_id(connection, asked))


def _own(asked: Envelope, key: str) -> str:
    if key != asked.src:
        raise BusRefused("id must be the sender's own (src)", code="id_mismatch", pointer="/payload/id")
    return key


def _check_speaker(connection: Connection, session: Session, key: str) -> None:
    """An agent speaks through the connection that added it, and through no other."""
    if connection.bus.speaker(session, key) is not connection:
        message = "src is not an agent that this connection has added; send agent.add first"
        raise BusRefused(message, code="src_not_bound", pointer="/src")


def _whole(asked: Envelope, name: str, default: int = 0) -> int:
    value = asked.fields().get(name, default)
    if type(value) is not int or value < 0:
        raise BusRefused(f"{name} is a whole number from 0 on", code="payload_invalid", pointer=f"/payload/{name}")
    return value
