"""Messages by HTTP: send, show, wait for and confirm them."""

from __future__ import annotations

import msgspec

from redkey.bus.envelope import ALL_AGENTS, USER, VERSION, Envelope
from redkey.bus.http.call import BusReply, BusRequest
from redkey.bus.http.shapes import BusMessageTaken, NewBusMessage
from redkey.bus.model import MESSAGE, SessionState
from redkey.bus.runtime.events import META, Message, kind_of, payload_of
from redkey.bus.views import find_message, show_envelope, show_mail, show_message
from redkey.errors import BusRefused

_WAITING = 100
_AGENTS = 1000


async def bus_send(call: BusRequest, body: NewBusMessage) -> BusReply:
    """Send a message to each of the agents that exist; 202 once all are durable."""
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
        # Checked before any message is sent: all or none.
        raise BusRefused(f"the mailbox of {full[0]} is full; retry when it has confirmed some", code="mailbox_full")
    envelopes = [_envelope(call, session, src, body, dst) for dst in (targets if body.to is None else [None])]
    also = call.answered(lambda _: _accepted(call, envelopes))
    for envelope in envelopes[:-1]:
        call.bus.send(session.key, envelope, lambda _: None)
    # Commits keep the order: when the last message is durable, so are the earlier ones.
    await call.durable(lambda done: call.bus.send(session.key, envelopes[-1], done, also=also))
    return _accepted(call, envelopes)


def _speaker(call: BusRequest, session: SessionState, body: NewBusMessage) -> str:
    """The sender: the agent of the key, an agent without a connection, or `user`."""
    src = call.caller.agent_id if call.caller.agent_id and body.src == USER else body.src
    call.check_speaks_for(src)
    if src != USER:
        call.bus.agent(session, src)
        if call.bus.speaker(session, src) is not None:
            raise BusRefused(
                "this agent is connected by a socket; send through that connection", code="agent_taken", pointer="/src"
            )
    return src


def _envelope(call: BusRequest, session: SessionState, src: str, body: NewBusMessage, dst: str | None) -> Envelope:
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
        # A kind that the runtime does not know is delivered unchanged, as on the socket.
        payload[META]["kind"] = body.kind
    topic = ALL_AGENTS if body.to == "agents" else None
    return Envelope(
        v=VERSION, type=MESSAGE, id=key, ts=now, src=src, dst=dst, topic=topic, session=session.id,
        payload=payload, ack=body.ack,
    )  # fmt: skip


def _accepted(call: BusRequest, envelopes: list[Envelope]) -> BusReply:
    if b"return=representation" not in call.headers.get(b"prefer", b""):
        return BusReply(202)
    return BusReply(202, [show_envelope(msgspec.to_builtins(envelope)) for envelope in envelopes])


async def bus_message(call: BusRequest) -> BusReply:
    """Show one message with all its fields."""
    if not call.sees(find_message(call.bus, call.session, call.names["message_id"])):
        raise BusRefused("message not found", code="message_not_found")
    return BusReply(200, show_message(call.bus, call.session, call.names["message_id"]))


async def bus_mail(call: BusRequest) -> BusReply:
    """List the messages that wait for an agent (or `user`), oldest first. Confirm each with its ack."""
    session = call.open_session
    agent, query = call.agent(session), call.query
    call.bus.seen(session, agent)
    limit = min(query.limit or _WAITING, _WAITING)
    records = await call.poll(session, lambda: call.bus.waiting(session, agent, limit, query.after), query.wait)
    return BusReply(200, [show_mail(record, agent.id) for record in records])


async def bus_acknowledge(call: BusRequest, body: BusMessageTaken) -> BusReply:
    """Confirm a message for an agent; confirming it again changes nothing."""
    session = call.open_session
    call.check_speaks_for(body.agent_id)
    agent = call.bus.agent(session, body.agent_id)
    record = find_message(call.bus, session, call.names["message_id"])
    call.bus.confirm(session.key, agent.id, record.id)
    return BusReply(204)
