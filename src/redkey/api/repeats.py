"""Requests that come again under their idempotency key: the same bytes, whatever happened since.

A reply is told again from the records of its request where it can be (`Route.repeats`); any other is kept as it was
sent before it is sent. Where and how long is `redkey.services.answers`.
"""

from __future__ import annotations

import asyncio
from inspect import iscoroutine
from typing import Any

import msgspec

from redkey.api.call import Call, Raw
from redkey.commands.decision import Refused, key_expired
from redkey.readmodel.request_keys import dropped_event
from redkey.services.answers import AnsweredBefore, KeepAnswer, KeptAnswer, kept_answer
from redkey.services.caller import Pending

_encode = msgspec.json.Encoder().encode


class Kept(Raw, frozen=True):
    """A reply that is kept already."""


async def answer_once(call: Call, body: Any) -> Any:
    """The reply of a handler whose commands do not carry the request's key as it is, or the one that was given before.

    No unit could find a kept answer for it, so it is looked for first; the same request, sent twice at once, waits.
    """
    flights, flight = call.services.flights, (call.topic, call.identity[0])
    while flight in flights:
        await asyncio.wait([flights[flight]])
    flights[flight] = done = asyncio.get_running_loop().create_future()
    try:
        before = kept_answer(call.services.store, call.topic, *call.identity)
        if before is not None:
            return raw(before)
        reply = call.endpoint.handler(call, body)
        if iscoroutine(reply):
            reply = await reply
        if type(reply) is Pending:
            reply = await call.settled(reply)
        return await kept(call, reply)
    finally:
        del flights[flight]
        done.set_result(None)


async def kept(call: Call, reply: Any) -> Any:
    """The reply to send: itself, or as it is kept once that is durable."""
    if not must_keep(call, reply):
        return reply
    outcome = await call.services.coordinator.submit(call.topic, call.actor, to_keep(call, reply))
    if outcome.kept is None:
        raise AssertionError("an answer that was not kept")
    return raw(outcome.kept)


def must_keep(call: Call, reply: Any) -> bool:
    """True when a request with a key got a reply that its records do not tell, and that is not kept yet."""
    return bool(call.identity[0]) and not call.is_told_by_records and type(reply) is not Kept


def to_keep(call: Call, reply: Any) -> KeepAnswer:
    """The command that keeps a reply under the request's key."""
    idem, body = call.identity
    if isinstance(reply, Raw):
        return KeepAnswer(idem, KeptAnswer(body, reply.status, reply.media, reply.body))
    return KeepAnswer(idem, KeptAnswer(body, call.endpoint.status, "application/json", _encode(reply)))


def answer_before(call: Call, error: Exception) -> Kept | None:
    """What a request was answered before that is refused now: what was done needs not be done once more.

    Refused when it was done so long ago that its answer is no longer kept.
    """
    if isinstance(error, AnsweredBefore):
        return raw(error.kept)
    idem, body = call.identity
    if not idem or not isinstance(error, Refused):
        return None
    store, topic = call.services.store, call.topic
    before = kept_answer(store, topic, idem, body)
    if before is not None:
        return raw(before)
    dropped = dropped_event(store, topic, call.services.coordinator.peek(topic), idem)
    if dropped:
        raise key_expired(dropped)
    return None


def raw(answer: KeptAnswer) -> Kept:
    """A kept answer as a reply."""
    return Kept(answer.reply, answer.media, answer.status)
