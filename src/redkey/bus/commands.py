"""The commands of protocol v0, each a few lines between an envelope and the bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import orjson

from redkey.bus.actions import Weave1
from redkey.bus.connection import Connection
from redkey.bus.envelope import USER, Envelope, agent_id, display_name
from redkey.bus.polls import Poll
from redkey.bus.runtime.events import META
from redkey.bus.runtime.newer import codex_of
from redkey.bus.shown import show_mail, show_message, show_session
from redkey.bus.state import KEY_MARK, POLICIES, Record, Session
from redkey.bus.streams import RecordStream, SessionStream
from redkey.errors import BusRefused

Command = Callable[[Connection, Envelope], None]
_HISTORY = 500
_WAITING = 100
_SESSIONS = 1000
# How many streams one connection may follow at once.
_STREAMS = 64
_STATUS_LIMIT = 100


def session_list(connection: Connection, asked: Envelope) -> None:
    """Sessions by id: the open ones, or those of a `status`, or all of them."""
    fields = asked.fields()
    status = fields.get("status", "open")
    if status not in ("open", "closed", "all"):
        raise BusRefused("status is open, closed or all", code="payload_invalid", pointer="/payload/status")
    limit = min(_whole(asked, "limit", default=_SESSIONS), _SESSIONS)
    after = _text(asked, "after") or ""
    found = connection.bus.sessions(connection.workspace, after, limit, None if status == "all" else status)
    connection.reply(asked, {"sessions": [show_session(one) for one in found]})


def session_get(connection: Connection, asked: Envelope) -> None:
    session = connection.bus.session(_session_id(connection, asked))
    connection.reply(asked, {"session": show_session(session)}, session=session.id)


def session_create(connection: Connection, asked: Envelope) -> None:
    """Create a session, or give the one that has this id (or, with `reuse`, this name) already."""
    fields, bus = asked.fields(), connection.bus
    name, key, policy = display_name(fields.get("name")), _text(asked, "id"), fields.get("policy", "open")
    if policy not in POLICIES:
        raise BusRefused(f"policy is one of {', '.join(POLICIES)}", code="policy_invalid", pointer="/payload/policy")
    found = bus.session_of_id(key, connection.workspace) if key is not None else None
    if key is None and _flag(asked, "reuse"):
        found = bus.open_session_named(name, connection.workspace)
    if found is not None:
        bus.settled(connection.done(asked, {"session": show_session(found)}, session=found.id))
        return
    made: list[Session] = []

    def done(refused: BusRefused | None) -> None:
        connection.done(asked, {"session": show_session(made[0])}, session=made[0].id)(refused)

    workspace = connection.workspace
    made.append(bus.create_session(asked.src, name, done, session_id=key, workspace=workspace, policy=policy))


def session_close(connection: Connection, asked: Envelope) -> None:
    """Close a session; one that is closed already stays so."""
    bus, session = connection.bus, connection.bus.session(_session_id(connection, asked))
    if session.status == "closed":
        bus.settled(connection.done(asked, {"session": show_session(session)}))
        return

    def done(refused: BusRefused | None) -> None:
        connection.done(asked, {"session": show_session(session)})(refused)

    session = bus.close_session(session.key, asked.src, done)


def sessions_stream(connection: Connection, asked: Envelope) -> None:
    """Sessions that come and go, from a place on."""
    _check_stream(connection, asked)
    stream = SessionStream(connection, asked, _whole(asked, "after"), follow=_flag(asked, "follow"))
    connection.reply(asked)
    stream.begin()


def agent_list(connection: Connection, asked: Envelope) -> None:
    session = _session(connection, asked)
    if not session.agents:
        connection.reply_raw(asked, b'{"agents":[]}')
        return
    agents = [connection.bus.show_agent(session, agent) for agent in session.agents.values()]
    # What has no value is left out on the socket.
    shown = [{name: part for name, part in one.items() if part is not None} for one in agents]
    connection.reply_raw(asked, b'{"agents":%b}' % orjson.dumps(shown))


def agent_add(connection: Connection, asked: Envelope) -> None:
    session, fields = _session(connection, asked), asked.fields()
    key = _own(asked, agent_id(fields.get("id")))
    name, lead, status = display_name(fields.get("name")), _flag(asked, "lead"), _status(asked)
    done = connection.done(asked, session=session.id)
    connection.bus.add_agent(session.key, key, name, done, member=connection, lead=lead, status=status)
    connection.agents.add((session.key, key))


def agent_update(connection: Connection, asked: Envelope) -> None:
    """Change what is given of oneself: the name, the status, whether one leads."""
    session, fields = _session(connection, asked), asked.fields()
    key = _own(asked, agent_id(fields.get("id")))
    _check_speaker(connection, session, key)
    _change(connection, asked, session, key, None)


def agent_change(connection: Connection, asked: Envelope) -> None:
    """Change any agent, as the person at this machine (`user`)."""
    session, key = _session(connection, asked), agent_id(asked.fields().get("id"))
    _check_user(asked)
    speaks = connection.bus.speaker(session, key) is not None
    _change(connection, asked, session, key, USER if speaks else None)


def _change(connection: Connection, asked: Envelope, session: Session, key: str, src: str | None) -> None:
    fields = asked.fields()
    name, status = display_name(fields.get("name")), _status(asked)
    lead = _flag(asked, "lead") if "lead" in fields else None
    if name is None and ("name" in fields or (status is None and lead is None)):
        raise BusRefused("a name must not be blank", code="name_blank", pointer="/payload/name")
    actor = connection if src is None else None
    done = connection.done(asked)
    connection.bus.update_agent(session.key, key, done, actor=actor, src=src, name=name, lead=lead, status=status)


def agent_order(connection: Connection, asked: Envelope) -> None:
    session, keys = _session(connection, asked), asked.fields().get("agent_ids")
    _check_user(asked)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise BusRefused("agent_ids is a list of ids", code="payload_invalid", pointer="/payload/agent_ids")
    connection.bus.order_agents(session.key, USER, keys, connection.done(asked))


def agent_remove(connection: Connection, asked: Envelope) -> None:
    """Remove an agent: itself, or any one when it is the person at this machine (`user`) who asks."""
    session, key = _session(connection, asked), agent_id(asked.fields().get("id"))
    if asked.src == USER:
        src = USER if connection.bus.speaker(session, key) is not None else None
        connection.bus.remove_agent(session.key, key, connection.done(asked), src=src)
        return
    _check_speaker(connection, session, _own(asked, key))
    connection.bus.remove_agent(session.key, key, connection.done(asked), actor=connection)
    connection.agents.discard((session.key, key))


def message_send(connection: Connection, asked: Envelope) -> None:
    session = _session(connection, asked)
    _check_speaker(connection, session, asked.src)
    if asked.v and isinstance(asked.payload, dict) and META not in asked.payload:
        # Agents of v0 find what belongs to the runtime under its old names.
        codex = codex_of(asked.payload, asked.meta)
        asked = msgspec.structs.replace(asked, payload={**asked.payload, META: codex} if codex else asked.payload)
    connection.bus.send(session.key, asked, connection.done(asked, {"message_id": asked.id}))


def message_get(connection: Connection, asked: Envelope) -> None:
    """One message of a session, and how far it has come."""
    session, key = connection.bus.session(_session_id(connection, asked)), asked.fields().get("id")
    if not isinstance(key, str):
        raise BusRefused("name a message: payload.id", code="payload_invalid", pointer="/payload/id")
    connection.reply(asked, {"message": show_message(connection.bus, session, key)})


def message_list(connection: Connection, asked: Envelope) -> None:
    """The messages that wait for an agent, oldest first; with `wait`, as soon as there is one."""
    session, bus = _session(connection, asked), connection.bus
    agent = bus.agent(session, _text(asked, "agent") or asked.src)
    if asked.src != USER:
        _check_speaker(connection, session, agent.id)
    limit = min(_whole(asked, "limit", default=_WAITING) or _WAITING, _WAITING)
    after = _whole(asked, "after")

    def look() -> list[Record]:
        return bus.waiting(session, agent, limit, after)

    def tell(found: Sequence[Record]) -> None:
        connection.reply(asked, {"messages": [show_mail(record, agent.id) for record in found]})

    connection.poll(Poll(bus.feed(session), look, _seconds(asked), tell))


def message_ack(connection: Connection, asked: Envelope) -> None:
    """Confirm a message. Nobody waits for an answer to this, so only a refusal gets one."""
    session = _session(connection, asked)
    _check_speaker(connection, session, asked.src)
    acked = asked.fields().get("acked", asked.corr)
    if not isinstance(acked, str):
        raise BusRefused("an ack names a message: payload.acked, or corr", code="ack_invalid", pointer="/payload/acked")
    connection.bus.confirm(session.key, asked.src, acked)


def events_history(connection: Connection, asked: Envelope) -> None:
    session, limits = connection.bus.session(_session_id(connection, asked)), connection.bus.limits
    limit = min(_whole(asked, "limit", default=_HISTORY) or _HISTORY, limits.history)
    feed, before = connection.bus.feed(session), _whole(asked, "before", default=1 << 39)
    after = _whole(asked, "after") if "after" in asked.fields() else None

    def look() -> list[Record]:
        return feed.between(after, before, limit, limits.history_bytes)

    def tell(found: Sequence[Record]) -> None:
        connection.reply_raw(asked, b'{"records":[%s]}' % b",".join([record.line for record in found]))

    connection.poll(Poll(feed, look, _seconds(asked), tell))


def events_stream(connection: Connection, asked: Envelope) -> None:
    session = connection.bus.session(_session_id(connection, asked))
    follow = _flag(asked, "follow")
    _check_stream(connection, asked)
    stream = RecordStream(connection, connection.bus.feed(session), asked, _whole(asked, "after"), follow=follow)
    connection.reply(asked, session=session.id)
    stream.begin()


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
    "message.send": message_send,
    "message.get": message_get,
    "message.list": message_list,
    "message.ack": message_ack,
    "events.history": events_history,
    "events.stream": events_stream,
}


def _admit(connection: Connection, asked: Envelope) -> Session:
    session = _session(connection, asked)
    _check_speaker(connection, session, asked.src)
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


# What the payload of each command may have.
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


def run(connection: Connection, asked: Envelope) -> None:
    """Do what an envelope asks for; BusRefused when it cannot be done."""
    command = COMMANDS.get(asked.type)
    if command is None:
        raise BusRefused(f"{asked.type[:64]!r} is not a command", code="unknown_command", pointer="/type")
    command(connection, asked)


def _session_id(connection: Connection, asked: Envelope) -> str:
    """The session a command is about: the one it names, or that of the socket it came by."""
    bound = connection.bound_session
    if bound is not None:
        if asked.session and asked.session not in (bound, bound.rpartition(KEY_MARK)[2]):
            raise BusRefused("this socket is another session's", code="session_mismatch", pointer="/session")
        return bound
    if not asked.session:
        raise BusRefused("this command names a session", code="session_missing", pointer="/session")
    return asked.session


def _session(connection: Connection, asked: Envelope) -> Session:
    return connection.bus.open_session(_session_id(connection, asked))


def _own(asked: Envelope, key: str) -> str:
    if key != asked.src:
        raise BusRefused("id must be the sender's own (src)", code="id_mismatch", pointer="/payload/id")
    return key


def _check_speaker(connection: Connection, session: Session, key: str) -> None:
    """An agent speaks through the connection that added it, and through no other; `user` is anybody at this machine."""
    if key != USER and connection.bus.speaker(session, key) is not connection:
        message = "src is not an agent that this connection has added; send agent.add first"
        raise BusRefused(message, code="src_not_bound", pointer="/src")


def _check_user(asked: Envelope) -> None:
    if asked.src != USER:
        raise BusRefused(
            f"only the person at this machine does this: src {USER!r}", code="src_not_user", pointer="/src"
        )


def _check_stream(connection: Connection, asked: Envelope) -> None:
    if asked.id in connection.streams:
        raise BusRefused("a stream of this id is being followed", code="id_reused", pointer="/id")
    if len(connection.streams) >= _STREAMS:
        raise BusRefused(f"a connection follows at most {_STREAMS} streams", code="too_many_streams")


def _flag(asked: Envelope, name: str) -> bool:
    value = asked.fields().get(name, False)
    if not isinstance(value, bool):
        raise BusRefused(f"{name} is true or false", code="payload_invalid", pointer=f"/payload/{name}")
    return value


def _text(asked: Envelope, name: str) -> str | None:
    value = asked.fields().get(name)
    if value is not None and not isinstance(value, str):
        raise BusRefused(f"{name} is text", code="payload_invalid", pointer=f"/payload/{name}")
    return value


def _status(asked: Envelope) -> str | None:
    status = _text(asked, "status")
    if status is not None and len(status) > _STATUS_LIMIT:
        message = f"a status has at most {_STATUS_LIMIT} characters"
        raise BusRefused(message, code="payload_invalid", pointer="/payload/status")
    return status


def _seconds(asked: Envelope) -> float:
    value = asked.fields().get("wait", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise BusRefused("wait is a number of seconds", code="payload_invalid", pointer="/payload/wait")
    return float(value)


def _whole(asked: Envelope, name: str, default: int = 0) -> int:
    value = asked.fields().get(name, default)
    if type(value) is not int or value < 0:
        raise BusRefused(f"{name} is a whole number from 0 on", code="payload_invalid", pointer=f"/payload/{name}")
    return value
