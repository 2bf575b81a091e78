"""How a message is recorded and delivered: one envelope with one destination and a complete ack."""

from __future__ import annotations

import msgspec

from redkey.bus.envelope import ALL_AGENTS, VERSION, Envelope, inbox_of, settle_ack
from redkey.bus.model import MESSAGE, SessionState
from redkey.errors import BusRefused


def message_envelope(session: SessionState, request: Envelope) -> Envelope:
    """Give the envelope that is recorded and delivered: `dst` set if it is for one agent, the ack complete."""
    dst, topic = request.dst or None, request.topic or None
    if topic is not None and topic != ALL_AGENTS:
        dst = dst or inbox_of(topic)
        if dst is None or inbox_of(topic) != dst:
            shape = f"topic must be agent.<id>.inbox of its destination, or {ALL_AGENTS}"
            raise BusRefused(shape, code="topic_invalid", pointer="/topic")
    elif topic is not None and dst is not None:
        raise BusRefused("give dst or the topic of all agents, not both", code="topic_invalid", pointer="/topic")
    if dst is not None and dst == request.src:
        raise BusRefused("an agent cannot write to itself", code="self_addressed", pointer="/dst")
    if request.payload is None:
        raise BusRefused("a message needs a payload", code="payload_invalid", pointer="/payload")
    if request.v:
        return _v1_envelope(session, request, dst, topic)
    return Envelope(
        v=VERSION,
        type=MESSAGE,
        id=request.id,
        ts=request.ts,
        src=request.src,
        dst=dst,
        topic=topic,
        session=session.id,
        corr=request.corr,
        payload=request.payload,
        ack=settle_ack(request.ack),
    )


def _v1_envelope(session: SessionState, request: Envelope, dst: str | None, topic: str | None) -> Envelope:
    """The same for a message of v1; `seq` counts within its connection and is not kept."""
    return msgspec.structs.replace(
        request,
        dst=dst,
        topic=topic,
        session=session.id,
        ack=settle_ack(request.ack),
        seq=None,
        status=None,
        error=None,
    )


def same_content(one: Envelope, other: Envelope) -> bool:
    """Whether two envelopes of one id are the same message, so that sending it again is allowed."""
    return (one.src, one.dst, one.topic, one.payload) == (other.src, other.dst, other.topic, other.payload)
