"""Repeated requests under an idempotency key: they get the same bytes, whatever happened since.

A reply is made again from the records of its request where possible (`Operation.repeats`). Any other reply is kept as
it was sent, before it is sent; where and how long is `redkey.services.answers`. An interface passes `render`, which
encodes a reply for its caller; a `KeptAnswer` in place of a reply is sent unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from redkey.commands.decision import Refused, key_expired
from redkey.errors import RedKeyError
from redkey.readmodel.request_keys import dropped_event
from redkey.services.answers import AnsweredBefore, KeepAnswer, KeptAnswer, kept_answer
from redkey.services.caller import Caller, Result
from redkey.services.outcome import Outcome

T = TypeVar("T")
# The status, the media type and the bytes of a reply.
Render = Callable[[Any], tuple[int, str, bytes]]


async def answer_once(caller: Caller, work: Callable[[], Result[T]], render: Render) -> T | KeptAnswer:
    """Return the reply of a use case whose commands do not carry the request's key as it is, or the kept reply.

    No unit could find a kept reply for it, so it is looked up first; a second copy of the request waits for the first.
    """
    flights, flight = caller.means.flights, (caller.topic, caller.identity[0])
    while flight in flights:
        await asyncio.wait([flights[flight]])
    flights[flight] = done = asyncio.get_running_loop().create_future()
    try:
        before = kept_answer(caller.means.store, caller.topic, *caller.identity)
        if before is not None:
            return before
        return await kept(caller, await caller.reply(work()), render)
    finally:
        del flights[flight]
        done.set_result(None)


async def kept(caller: Caller, reply: T, render: Render) -> T | KeptAnswer:
    """Return the reply to send: the reply itself, or its kept form once that is durable."""
    if not must_keep(caller, reply):
        return reply
    outcome = await caller.means.coordinator.submit(caller.topic, caller.actor, _to_keep(caller, reply, render))
    if outcome.kept is None:
        raise AssertionError("an answer that was not kept")
    return outcome.kept


def keep(caller: Caller, reply: object, render: Render, done: Callable[[KeptAnswer | RedKeyError], None]) -> None:
    """Keep a reply; call `done` with its form to send once it is durable, or with why it could not be kept."""

    def settled(outcome: Outcome | RedKeyError) -> None:
        if isinstance(outcome, RedKeyError):
            done(outcome)
        else:
            done(outcome.kept if outcome.kept is not None else RedKeyError("not kept"))

    caller.means.coordinator.enqueue(caller.topic, caller.actor, _to_keep(caller, reply, render), (), settled)


def must_keep(caller: Caller, reply: object) -> bool:
    """True if a request with a key got a reply that its records do not show, and that is not kept yet."""
    return caller.is_unrecorded and type(reply) is not KeptAnswer and bool(caller.identity[0])


def answer_before(caller: Caller, error: Exception) -> KeptAnswer | None:
    """Return the reply that a request, now refused, got earlier: what was done need not be done again.

    Refused if it was done so long ago that its reply is no longer kept.
    """
    if isinstance(error, AnsweredBefore):
        return error.kept
    idem, body = caller.identity
    if not idem or not isinstance(error, Refused):
        return None
    store, topic = caller.means.store, caller.topic
    before = kept_answer(store, topic, idem, body)
    if before is None:
        dropped = dropped_event(store, topic, caller.means.coordinator.peek(topic), idem)
        if dropped:
            raise key_expired(dropped)
    return before


def _to_keep(caller: Caller, reply: object, render: Render) -> KeepAnswer:
    idem, body = caller.identity
    return KeepAnswer(idem, KeptAnswer(body, *render(reply)))
