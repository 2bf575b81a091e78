"""Messages by HTTP: sent, shown, waited for and confirmed."""

from __future__ import annotations

from typing import Literal

import msgspec
import orjson

from redkey.bus.envelope import EVERYBODY, USER, VERSION, Ack, Envelope
from redkey.bus.http.call import Answer, Call
from redkey.bus.runtime.events import Kind, Message, payload_of
from redkey.bus.shown import find_message, show_envelope, show_message
from redkey.bus.state import MESSAGE, Session
from redkey.errors import BusRefused

_WAITING = 100
_AGENTS = 1000


class NewMessage(msgspec.Struct, frozen=True):
    """A message to some agents, or to the leads or all agents of the session."""

    text: str = ""
    agent_ids: list[str] = []
    to: Literal["leads", "agents"] | None = None
    src: str = USER
    kind: Kind = "user"
    conversation_id: str | None = None
    conversation_owner: str | None = None
    parent_message_id: str | None = None
    reply_to: str | None = None
    ack: Ack | None = None


class Taken(msgspec.Struct, frozen=True):
    """Who has taken a message."""

    agent_id: str


async def send(call: Call, body: NewMessage) -> Answer:
    """Send a message to each of the agents that are there; 202 once all of them are durable."""
    session = call.open_session
    src = _speaker(call, session, body)
    if not body.text.strip() or (not body.agent_ids and body.to is None):
        raise BusRefused("missing text or agent_ids", code="message_incomplete")
    if len(body.agent_ids) > _AGENTS:
        raise BusRefused(f"a message goes to at most {_AGENTS} agents", code="message_incomplete", pointer="/agent_ids")
    targets = [key for key in dict.fromkeys(body.agent_ids) if key in session.agents and key != src]
    if body.to is None and not targets:
        raise BusRefused("agent_ids not found", code="agents_not_found", pointer="/agent_ids")
    full = [key for key in targets if session.agents[key].waiting >= call.bus.limits.mailbox]
    if full:
        # Before any of them is sent: all or none.
        raise BusRefused(f"as many messages wait for {full[0]} as it may have", code="mailbox_full")
    envelopes = [_envelope(call, session, src, body, dst) for dst in (targets if body.to is None else [None])]
    also = call.answered(lambda _: _accepted(call, envelopes))
    for envelope in envelopes[:-1]:
        call.bus.send(session.id, envelope, lambda _: None)
    # One order, one log: when the last is durable, so are those before it.
    await call.durable(lambda done: call.bus.send(session.id, envelopes[-1], done, also=also))
    return _accepted(call, envelopes)


def _speaker(call: Call, session: Session, body: NewMessage) -> str:
    """Who speaks: the agent of the key, an agent that no connection has, or whoever sits at the HTTP face."""
    src = call.caller.agent_id if call.caller.agent_id and body.src == USER else body.src
    call.check_speaks_for(src)
    if src != USER:
        call.bus.agent(session, src)
        if call.bus.speaker(session, src) is not None:
            raise BusRefused("this agent speaks through its own connection", code="agent_taken", pointer="/src")
    return src


def _envelope(call: Call, session: Session, src: str, body: NewMessage, dst: str | None) -> Envelope:
    key, now = call.derived_id("message", dst or "") or call.bus.new_id(), call.bus.now()
    message = Message(
        id=key,
        session_id=session.id,
        src=src,
        dst=dst,
        kind=body.kind,
        text=body.text,
        conversation_id=body.conversation_id or key,
        conversation_owner=body.conversation_owner or src,
        parent_message_id=body.parent_message_id,
        reply_to=body.reply_to,
        created_at=now,
    )
    topic = EVERYBODY if body.to == "agents" else None
    return Envelope(
        v=VERSION, type=MESSAGE, id=key, ts=now, src=src, dst=dst, topic=topic, session=session.id,
        payload=payload_of(message), ack=body.ack,
    )  # fmt: skip


def _accepted(call: Call, envelopes: list[Envelope]) -> Answer:
    if b"return=representation" not in call.headers.get(b"prefer", b""):
        return Answer(202)
    return Answer(202, [show_envelope(msgspec.to_builtins(envelope)) for envelope in envelopes])


async def read(call: Call) -> Answer:
    """One message, with all fields of a message."""
    return Answer(200, show_message(call.bus, call.session, call.names["message_id"]))


async def waiting(call: Call) -> Answer:
    """The messages that wait for an agent, oldest first. Confirm each with its ack."""
    session = call.open_session
    agent = call.agent(session)
    call.bus.seen(session, agent)
    records = call.bus.waiting(session, agent, call.number("limit", _WAITING, _WAITING))
    return Answer(200, [{**show_envelope(orjson.loads(one.envelope)), "dst": agent.id} for one in records])


async def acknowledge(call: Call, body: Taken) -> Answer:
    """An agent has taken a message; saying so again is fine."""
    session = call.open_session
    call.check_speaks_for(body.agent_id)
    agent = call.bus.agent(session, body.agent_id)
    record = find_message(call.bus, session, call.names["message_id"])
    call.bus.confirm(session.id, agent.id, record.id)
    return Answer(204)
