"""The commands of protocol v0 for messages and events."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.bus.command_fields import (
    check_speaker,
    check_stream,
    count_field,
    flag_field,
    open_session_of,
    session_id_of,
    text_field,
    wait_field,
)
from redkey.bus.connection import BusConnection
from redkey.bus.envelope import USER, Envelope
from redkey.bus.model import SessionRecord
from redkey.bus.polls import Poll
from redkey.bus.streams import RecordStream
from redkey.bus.views import show_mail, show_message
from redkey.bus.weave1 import with_sender_name
from redkey.errors import BusRefused

_HISTORY = 500
_WAITING = 100


def message_send(connection: BusConnection, request: Envelope) -> None:
    """Send a message to an agent, to all agents or to the leads."""
    session = open_session_of(connection, request)
    check_speaker(connection, session, request.src)
    if request.v:
        request = with_sender_name(session, request)
    connection.bus.send(session.key, request, connection.done(request, {"message_id": request.id}))


def message_get(connection: BusConnection, request: Envelope) -> None:
    """Show one message and the state of its deliveries."""
    session, key = connection.bus.session(session_id_of(connection, request)), request.fields().get("id")
    if not isinstance(key, str):
        raise BusRefused("payload.id must be the id of a message", code="payload_invalid", pointer="/payload/id")
    connection.reply(request, {"message": show_message(connection.bus, session, key)})


def message_list(connection: BusConnection, request: Envelope) -> None:
    """List the messages that wait for an agent, oldest first; with `wait`, as soon as there is one."""
    session, bus = open_session_of(connection, request), connection.bus
    agent = bus.agent(session, text_field(request, "agent") or request.src)
    if request.src != USER:
        check_speaker(connection, session, agent.id)
    limit = min(count_field(request, "limit", default=_WAITING) or _WAITING, _WAITING)
    after = count_field(request, "after")

    def look() -> list[SessionRecord]:
        return bus.waiting(session, agent, limit, after)

    def answer(records: Sequence[SessionRecord]) -> None:
        connection.reply(request, {"messages": [show_mail(record, agent.id) for record in records]})

    connection.poll(Poll(bus.feed(session), look, wait_field(request), answer))


def message_ack(connection: BusConnection, request: Envelope) -> None:
    """Confirm a message. Clients await no reply, so only a refusal is answered."""
    session = open_session_of(connection, request)
    check_speaker(connection, session, request.src)
    acked = request.fields().get("acked", request.corr)
    if not isinstance(acked, str):
        raise BusRefused(
            "an ack needs the id of a message: payload.acked, or corr", code="ack_invalid", pointer="/payload/acked"
        )
    connection.bus.confirm(session.key, request.src, acked)


def events_history(connection: BusConnection, request: Envelope) -> None:
    """List records of a session: the next ones after `after`, else the last ones."""
    session, limits = connection.bus.session(session_id_of(connection, request)), connection.bus.limits
    limit = min(count_field(request, "limit", default=_HISTORY) or _HISTORY, limits.history)
    feed, before = connection.bus.feed(session), count_field(request, "before", default=1 << 39)
    after = count_field(request, "after") if "after" in request.fields() else None

    def look() -> list[SessionRecord]:
        return feed.between(after, before, limit, limits.history_bytes)

    def answer(records: Sequence[SessionRecord]) -> None:
        connection.reply_raw(request, b'{"records":[%s]}' % b",".join([record.line for record in records]))

    connection.poll(Poll(feed, look, wait_field(request), answer))


def events_stream(connection: BusConnection, request: Envelope) -> None:
    """Stream the records of a session from a position on."""
    session = connection.bus.session(session_id_of(connection, request))
    follow = flag_field(request, "follow")
    check_stream(connection, request)
    stream = RecordStream(
        connection, connection.bus.feed(session), request, count_field(request, "after"), follow=follow
    )
    connection.reply(request, session=session.id)
    stream.begin()
