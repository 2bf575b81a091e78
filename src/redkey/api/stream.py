"""Live events as server-sent events: `GET /stream`. An id is a place in the workspace's order, so a follower that
comes back with Last-Event-ID misses nothing and sees nothing twice."""

from __future__ import annotations

import msgspec

from redkey.api.adapter import Receive, Send, Stream
from redkey.api.call import Call
from redkey.commands.decision import invalid
from redkey.errors import Finding, TooManySubscribers
from redkey.http.event_stream import MEDIA_TYPE, cursor_frame, event_frame, run_event_stream
from redkey.http.problems import Declined
from redkey.http.route import READ, Route
from redkey.readmodel.events import ShownEvent
from redkey.services.subscriptions import Filter, Subscription, Subscriptions
from redkey.wire.catalogue import catalogue

_LARGEST_CURSOR = 1 << 40
_encode = msgspec.json.Encoder().encode


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
    """The stream of one follower."""

    def __init__(self, call: Call, subscription: Subscription) -> None:
        self._call, self._source = call, Followed(subscription, call.services.subscriptions)

    async def run(self, receive: Receive, send: Send) -> int:
        services = self._call.services
        try:
            release = services.authority.hold(self._call.principal, self._source.end)
        except BaseException:
            self._source.leave()
            raise
        try:
            seconds = services.config.limits.cursor_seconds
            return await run_event_stream(self._call.exchange, self._source, cursor_seconds=seconds)
        finally:
            release()


class Followed:
    """A subscription as the source of a stream."""

    def __init__(self, subscription: Subscription, subscriptions: Subscriptions) -> None:
        self._subscription, self._subscriptions = subscription, subscriptions
        self.take, self.wait, self.leave = subscription.take, subscription.wait, subscription.leave
        self._over = False

    @property
    def ended(self) -> bool:
        return self._over or self._subscriptions.stopping

    def end(self) -> None:
        """The follower may not look any more."""
        self._over = True
        self._subscription.wake()

    @property
    def behind(self) -> bool:
        return self._subscription.behind

    def cursor(self) -> bytes:
        return cursor_frame(self._subscription.position)


def frame(event: ShownEvent) -> bytes:
    """An event of the ledger as a server-sent event."""
    return event_frame(event.sequence, _encode(event), event.type)


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
