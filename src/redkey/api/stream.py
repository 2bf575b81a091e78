"""Live events as server-sent events: `GET /stream`. An id is a place in the workspace's order, so a follower that
comes back with Last-Event-ID misses nothing and sees nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from redkey.api.adapter import SECURITY, Receive, Send, Stream
from redkey.api.call import Call
from redkey.errors import Finding, TooManySubscribers
from redkey.http.problems import Declined, invalid
from redkey.http.route import READ, Route
from redkey.services.subscriptions import Filter, Subscription
from redkey.wire.catalogue import catalogue

MEDIA_TYPE = "text/event-stream"
_BEGIN = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", MEDIA_TYPE.encode()), (b"x-accel-buffering", b"no"), *SECURITY],
}
_OUTPUT_BYTES = 64 * 1024
_LARGEST_CURSOR = 1 << 40


class Follow(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What to follow: event types with commas between, one agent, one workflow, one queue; from where on."""

    types: str = ""
    agent_id: str = ""
    workflow_id: str = ""
    queue_id: str = ""
    after: int | None = None


async def stream(call: Call) -> EventStream:
    """Follow the events of the workspace."""
    query: Follow = call.query
    wanted = Filter(
        types=event_types(query.types, "types"),
        agent_id=query.agent_id,
        workflow_id=query.workflow_id,
        queue_id=queue_name(query.queue_id),
    )
    return follow(call, wanted, query.after)


def follow(call: Call, wanted: Filter, after: int | None) -> EventStream:
    """A stream of the wanted events from Last-Event-ID, else from `after`, else from the head on."""
    services = call.services
    start = cursor_of(call, after)
    if start is not None and start > services.store.head(call.topic).sequence:
        detail = f"The ledger of this workspace has not reached {start}; begin without a cursor, or at a smaller one."
        raise Declined(422, "cursor_beyond_head", detail)
    try:
        return EventStream(call, services.subscriptions.open(call.topic, start, wanted))
    except TooManySubscribers as refused:
        raise Declined(503, refused.code, refused.message, headers={"retry-after": "5"}) from None


def cursor_of(call: Call, after: int | None) -> int | None:
    """Where a follower wants to go on."""
    text = call.exchange.headers.get(b"last-event-id", b"").strip()
    if not text:
        found = after
    elif text.isdigit() and len(text) <= 15:
        found = int(text)
    else:
        found = -1
    if found is not None and not 0 <= found < _LARGEST_CURSOR:
        raise Declined(422, "cursor_invalid", "Last-Event-ID and after are ids of this stream: whole numbers.")
    return found


def event_types(text: str, name: str) -> frozenset[str]:
    """Event types with commas between them; every unknown one is named."""
    types = frozenset(part.strip() for part in text.split(",")) if text else frozenset()
    unknown = sorted(types - catalogue().keys())
    if unknown:
        raise invalid([Finding("unknown_type", f"/{name}", f"{one[:64]!r} is not an event type") for one in unknown])
    return types


def queue_name(text: str) -> str:
    """A queue as wires name it: `podcast`, `queues.podcast` and `queue_podcast` are one."""
    if not text or text.startswith("queue_"):
        return text
    return "queue_" + text.removeprefix("queues.")


class EventStream(Stream):
    """One follower's connection."""

    def __init__(self, call: Call, subscription: Subscription) -> None:
        self._call, self._subscription = call, subscription
        limits = call.services.config.limits
        self._cursor_seconds, self._stalled_seconds = limits.cursor_seconds, limits.stalled_seconds
        self._sent_at = 0.0

    async def run(self, receive: Receive, send: Send) -> int:
        # Ten thousand followers must not cost what the system would give each of them.
        self._call.exchange.connection.bound_output(_OUTPUT_BYTES)
        try:
            await self._call.exchange.while_connected(self._answer(send))
        except ConnectionResetError:
            # It left, as followers do.
            pass
        except TimeoutError:
            # It took nothing for so long that it is taken for dead; its last id is its cursor.
            self._call.exchange.connection.abort()
        finally:
            self._subscription.leave()
        return 200

    async def _answer(self, send: Send) -> None:
        await send(_BEGIN)
        if self._call.exchange.method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
        else:
            await self._follow(send)

    async def _follow(self, send: Send) -> None:
        subscription, subscriptions = self._subscription, self._call.services.subscriptions
        loop = asyncio.get_running_loop()
        # At once, so that the follower knows where it stands and proxies pass the headers on.
        await self._send(send, b"retry: 1000\n" + subscription.cursor(), loop)
        while not subscriptions.stopping:
            chunk = subscription.take()
            if chunk:
                await self._send(send, chunk, loop)
                continue
            left = self._sent_at + self._cursor_seconds - loop.time()
            if left <= 0:
                await self._send(send, subscription.cursor(), loop)
            elif subscription.behind:
                # Nothing of this page was wanted: let others have their turn before the next.
                await asyncio.sleep(0)
            else:
                await subscription.wait(left)
        await self._send(send, subscription.cursor(), loop)
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, chunk: bytes, loop: Any) -> None:
        message = {"type": "http.response.body", "body": chunk, "more_body": True}
        if self._call.exchange.connection.is_stalled:
            async with asyncio.timeout(self._stalled_seconds):
                await send(message)
        else:
            await send(message)
        self._sent_at = loop.time()


ROUTES = [
    Route(
        "GET",
        "/stream",
        stream,
        READ,
        query=Follow,
        summary="Follow the workspace's events as server-sent events.",
        media=(MEDIA_TYPE,),
        streamed=True,
    ),
]
