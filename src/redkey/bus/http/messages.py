"""Messages by HTTP: sent, shown, waited for and confirmed."""

from __future__ import annotations

import msgspec

from redkey.bus.envelope import EVERYBODY, USER, VERSION, Envelope
from redkey.bus.http.call import Answer, Call
from redkey.bus.http.shapes import BusMessageTaken, NewBusMessage
from redkey.bus.runtime.events import META, Message, kind_of, payload_of
from redkey.bus.shown import find_message, show_envelope, show_mail, show_message
from redkey.bus.state import MESSAGE, Session
from redkey.errors import BusRefused

_WAITING = 100
_AGENTS = 1000


async def bus_send(call: Call, body: NewBusMessage) -> Answer:
    """Send a message to each of the agents that are there; 202 once all of them are durable."""
    session = call.open_session
    src = _speaker(call, session, body)
    if not body.text.strip() or (not body.agent_ids and body.to is None):
        raise BusRefused("missing text or agent_ids", code="message_incomplete")
    if len(body.agent_ids) > _AGENTS:
        raise BusRefused(f"a message goes to at most {_AGENTS} agents", code="message_incomplete", pointer="/agent_ids")
    here = {*session.agents, USER}
    targets = [key for key in dict.fromkeys(body.agent_ids) if key in here and key != src]
    if body.to is None and not targets:
        raise BusRefused("agent_ids not found", code="agents_not_found", pointer="/agent_ids")
    most = call.bus.limits.mailbox
    full = [key for key in targets if key != USER and session.agents[key].waiting >= most]
    if full:
        # Before any of them is sent: all or none.
        raise BusRefused(f"as many messages wait for {full[0]} as it may have", code="mailbox_full")
    envelopes = [_envelope(call, session, src, body, dst) for dst in (targets if body.to is None else [None])]
    also = call.answered(lambda _: _accepted(call, envelopes))
    for envelope in envelopes[:-1]:
        call.bus.send(session.key, envelope, lambda _: None)
    # One order, one log: when the last is durable, so are those before it.
    await call.durable(lambda done: call.bus.send(session.key, envelopes[-1], done, also=also))
    return _accepted(call, envelopes)


def _speaker(call: Call, session: Session, body: NewBusMessage) -> str:
    """Who speaks: the agent of the key, an agent that no connection has, or whoever sits at the HTTP face."""
    src = call.caller.agent_id if call.caller.agent_id and body.src == USER else body.src
    call.check_speaks_for(src)
    if src != USER:
        call.bus.agent(session, src)
        if call.bus.speaker(session, src) is not None:
            raise BusRefused("this agent speaks through its own connection", code="agent_taken", pointer="/src")
    return src


def _envelope(call: Call, session: Session, src: str, body: NewBusMessage, dst: str | None) -> Envelope:
    key, now = call.derived_id("message", dst or "") or call.bus.new_id(), call.bus.now()
    message = Message(
        id=key,
        session_id=session.id,
        src=src,
        dst=dst,
        kind=kind_of(body.kind),
        text=body.text,
        conversation_id=body.conversation_id or key,
        conversation_owner=body.conversation_owner or src,
        parent_message_id=body.parent_message_id,
        reply_to=body.reply_to,
        created_at=now,
    )
    payload = payload_of(message)
    if body.kind != message.kind:
        # A kind that the runtime does not know is carried as it was sent, as on the socket.
        payload[META]["kind"] = body.kind
    topic = EVERYBODY if body.to == "agents" else None
    return Envelope(
        v=VERSION, type=MESSAGE, id=key, ts=now, src=src, dst=dst, topic=topic, session=session.id,
        payload=payload, ack=body.ack,
    )  # fmt: skip


def _accepted(call: Call, envelopes: list[Envelope]) -> Answer:
    if b"return=representation" not in call.headers.get(b"prefer", b""):
        return Answer(202)
    return Answer(202, [show_envelope(msgspec.to_builtins(envelope)) for envelope in envelopes])


async def bus_message(call: Call) -> Answer:
    """One message, with all fields of a message."""
    if not call.sees(find_message(call.bus, call.session, call.names["message_id"])):
        raise BusRefused("message not found", code="message_not_found")
    return Answer(200, show_message(call.bus, call.session, call.names["message_id"]))


async def bus_mail(call: Call) -> Answer:
    """The messages that wait for an agent (or for `user`), oldest first. Confirm each with its ack."""
    session = call.open_session
    agent, query = call.agent(session), call.query
    call.bus.seen(session, agent)
    limit = min(query.limit or _WAITING, _WAITING)
    found = await call.poll(session, lambda: call.bus.waiting(session, agent, limit, query.after), query.wait)
    return Answer(200, [show_mail(record, agent.id) for record in found])


async def bus_acknowledge(call: Call, body: BusMessageTaken) -> Answer:
    """An agent has taken a message; saying so again is fine."""
    session = call.open_session
    call.check_speaks_for(body.agent_id)
    agent = call.bus.agent(session, body.agent_id)
    record = find_message(call.bus, session, call.names["message_id"])
    call.bus.confirm(session.key, agent.id, record.id)
    return Answer(204)
