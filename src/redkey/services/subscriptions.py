"""Subscriptions: callers follow a workspace's events from any place in the order on, without gaps or duplicates.

Each followed workspace has one feed: a ring of its last events, each encoded once for all followers. A follower has no
queue of its own, only a position: it reads from the ring if the ring reaches back to the position, else from the store.
So a slow reader costs only what it reads, and cannot get events out of order. Waiting followers are grouped by their
filter, so that an event costs nothing for groups that do not want it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from redkey import fibers
from redkey.errors import StoreError, TooManySubscribers
from redkey.ledger.ports import Reader, SequencedStore
from redkey.readmodel.events import show
from redkey.readmodel.rows import entity
from redkey.services.outcome import Settled, settled
from redkey.shapes.events import Event
from redkey.wire.ids import parse_stream
from redkey.wire.subjects import subjects

RING = 4096
PAGE = 500
# The limits of one delivery.
CHUNK_BYTES = 256 * 1024
# The cost of waking one follower is about this. With many followers they are woken less often, so that the writers keep
# most of the time.
_WAKE_SECONDS = 50e-6
_FEW = 16
_AT_ONCE = 64

# Encodes an event for followers.
Encode = Callable[[Event], bytes]


class Filter(msgspec.Struct, frozen=True):
    """A follower's filter; an empty field matches everything."""

    types: frozenset[str] = frozenset()
    agent_id: str = ""
    workflow_id: str = ""
    queue_id: str = ""
    task_id: str = ""

    @property
    def takes_all(self) -> bool:
        return not (self.types or self.agent_id or self.workflow_id or self.queue_id or self.task_id)


class Published(msgspec.Struct, gc=False):
    """One event. It is encoded when the first follower reads it, and its names are listed when a filter needs them."""

    record: Settled
    encoded: bytes = b""
    subjects: tuple[str, ...] = ()

    @property
    def sequence(self) -> int:
        return self.record.sequence

    @property
    def type(self) -> str:
        return self.record.event.type

    @property
    def names(self) -> tuple[str, ...]:
        """Return the ids that the event is about."""
        if not self.subjects:
            self.subjects = subjects(self.record.event)
        return self.subjects

    @property
    def task_id(self) -> str:
        """Return the task that the event is about, or else the task that it names; empty if there is none."""
        stream = parse_stream(self.record.event.stream.stream_id)
        named: str | None = getattr(self.record.event.payload, "task_id", None)
        return named or (stream.subject if stream.kind == "task" else "")

    def chunk(self, encode: Encode) -> bytes:
        """Return the event encoded for followers."""
        if not self.encoded:
            record = self.record
            self.encoded = encode(show(record.event, record.sequence, record.timestamp))
        return self.encoded


class Waiting:
    """Followers that wait with the same filter: up to which place nothing matched, and if something now does."""

    __slots__ = ("due", "futures", "reached")

    def __init__(self, reached: int) -> None:
        # In the order in which they began to wait.
        self.futures: dict[asyncio.Future[None], None] = {}
        self.reached, self.due = reached, False


class Feed:
    """The last events of one workspace, and the followers that wait for the next."""

    def __init__(self, store: SequencedStore, topic: str, head: int, encode: Encode) -> None:
        """`head` is where the feed begins; the store has watched the topic since before `head` was read."""
        self._store, self.topic, self._encode = store, topic, encode
        self.last = head
        self.followers = 0
        # True while the store is read: records that are committed meanwhile are found by the next page of that.
        self._is_looking = False
        self._ring: deque[Published] = deque(maxlen=RING)
        self._waiting: dict[Filter, Waiting] = {}
        self._waking: asyncio.Handle | None = None
        # The next delivery of all followers at the same place: (after, last), bytes.
        self._joined: tuple[tuple[int, int], bytes] = ((0, 0), b"")
        # task -> (queue, workflow), which never change.
        self._places: dict[str, tuple[str, str]] = {}

    def hear(self, records: Sequence[Settled]) -> None:
        """Add records that were committed."""
        if records[0].sequence != self.last + 1:
            # Other processes wrote in between: the store has everything. If it cannot be read now, the next read finds
            # them.
            if not self._store.inline:
                fibers.start(self.look_if_possible)
            else:
                self.look_if_possible()
            return
        self._add([*map(Published, records)])
        self._announce()

    def look_if_possible(self) -> None:
        """Read the store, unless a read is running already or the store is not available now."""
        if not self._is_looking:
            with suppress(StoreError):
                self.look()

    def look(self) -> None:
        """Add the records that the store has beyond the last event."""
        self._is_looking = True
        try:
            while records := self._store.read(self.topic, self.last, PAGE):
                # Some of them may have been added while they were read.
                if news := [Published(settled(record)) for record in records if record.sequence > self.last]:
                    self._add(news)
                    self._announce()
        finally:
            self._is_looking = False

    def _add(self, events: list[Published]) -> None:
        self._ring.extend(events)
        self.last = events[-1].sequence
        types: set[str] = set()
        names: set[str] = set()
        for wanted, waiting in self._waiting.items():
            if waiting.due:
                continue
            if wanted.takes_all:
                waiting.due = True
                continue
            if not types:
                types = {event.type for event in events}
                names = {name for event in events for name in event.names}
            # Most filters can be decided from all events at once.
            if (
                (wanted.types and wanted.types.isdisjoint(types))
                or (wanted.agent_id and wanted.agent_id not in names)
                or (wanted.task_id and wanted.task_id not in names)
            ):
                waiting.reached = self.last
            elif self._may_want(events, wanted):
                waiting.due = True
            else:
                waiting.reached = self.last

    def _may_want(self, events: list[Published], wanted: Filter) -> bool:
        if not self._store.inline and (wanted.queue_id or wanted.workflow_id):
            # Finding the queue of a task may need a read: the follower does that when it reads the events.
            return True
        try:
            return any(self._matches(event, wanted) for event in events)
        except StoreError:
            # Do not fail the commit path: the follower will read the store itself, and report the same error.
            return True

    def take(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        """Return the wanted events after a place, as many as fit into one delivery, and the place that it reaches."""
        if after >= self.last:
            return b"", after
        first = self._ring[0].sequence if self._ring else self.last + 1
        if after + 1 < first:
            events = [Published(settled(record)) for record in self._store.read(self.topic, after, PAGE)]
            return self._select(events, wanted)
        if wanted.takes_all and self._joined[0] == (after, self.last):
            return self._joined[1], self.last
        start = after + 1 - first
        events = [self._ring[index] for index in range(start, min(start + PAGE, len(self._ring)))]
        chunk, reached = self._select(events, wanted)
        if wanted.takes_all:
            self._joined = (after, reached), chunk
        return chunk, reached

    async def wait(self, after: int, wanted: Filter, seconds: float) -> int:
        """Sleep until there may be a wanted event after a place, or until the time is over; return the place up to
        which there is none.
        """
        if self.last > after:
            return after
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.get(wanted)
        if waiting is None:
            waiting = self._waiting[wanted] = Waiting(self.last)
        waiting.futures[future] = None
        timer = loop.call_later(seconds, _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            del waiting.futures[future]
            if not waiting.futures and self._waiting.get(wanted) is waiting:
                del self._waiting[wanted]
        # Followers that came after this was scheduled are beyond it already.
        return max(after, waiting.reached)

    def wake(self) -> None:
        """Wake all waiting followers, even if there is nothing: a few at a time, so that other code can run."""
        self._wake_some([future for waiting in self._waiting.values() for future in waiting.futures])

    def _wake_due(self) -> None:
        due = [wanted for wanted, waiting in self._waiting.items() if waiting.due]
        self._wake_some([future for wanted in due for future in self._waiting.pop(wanted).futures])

    def _wake_some(self, futures: list[asyncio.Future[None]]) -> None:
        self._waking = None
        for future in futures[:_AT_ONCE]:
            _wake(future)
        del futures[:_AT_ONCE]
        if futures:
            self._waking = asyncio.get_running_loop().call_soon(self._wake_some, futures)
        else:
            # Something may have come for others meanwhile.
            self._announce()

    def _announce(self) -> None:
        if self._waking is None:
            many = sum(len(waiting.futures) for waiting in self._waiting.values() if waiting.due)
            if many:
                delay = many * _WAKE_SECONDS if many > _FEW else 0
                self._waking = asyncio.get_running_loop().call_later(delay, self._wake_due)

    def _select(self, events: list[Published], wanted: Filter) -> tuple[bytes, int]:
        parts: list[bytes] = []
        size = reached = 0
        everything = wanted.takes_all
        for event in events:
            reached = event.record.sequence
            if everything or self._matches(event, wanted):
                chunk = event.chunk(self._encode)
                parts.append(chunk)
                size += len(chunk)
                if size >= CHUNK_BYTES:
                    break
        return b"".join(parts), reached

    def _matches(self, event: Published, wanted: Filter) -> bool:
        if wanted.types and event.type not in wanted.types:
            return False
        if any(name and name not in event.names for name in (wanted.agent_id, wanted.task_id)):
            return False
        if wanted.queue_id and wanted.queue_id not in event.names and self._place(event)[0] != wanted.queue_id:
            return False
        return not (
            wanted.workflow_id and wanted.workflow_id not in event.names and self._place(event)[1] != wanted.workflow_id
        )

    def _place(self, event: Published) -> tuple[str, str]:
        task_id = event.task_id
        place = self._places.get(task_id)
        if place is None:
            place = place_of(self._store, self.topic, task_id)
            if len(self._places) >= RING:
                self._places.pop(next(iter(self._places)))
            self._places[task_id] = place
        return place


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def place_of(store: Reader, topic: str, task_id: str) -> tuple[str, str]:
    """Return the queue and the workflow of a task."""
    row = store.row(topic, "task", task_id) if task_id else None
    if row is None:
        return "", ""
    task = entity(row)
    return task.queue_id, task.workflow_id


class Subscription:
    """One follower: a feed, a filter and a position."""

    def __init__(self, feed: Feed, after: int, wanted: Filter, leave: Callable[[], None]) -> None:
        self._feed, self.position, self._wanted, self.leave = feed, after, wanted, leave

    def take(self) -> bytes:
        """Return the next delivery for this follower."""
        chunk, self.position = self._feed.take(self.position, self._wanted)
        return chunk

    @property
    def behind(self) -> bool:
        return self._feed.last > self.position

    async def wait(self, seconds: float) -> None:
        self.position = await self._feed.wait(self.position, self._wanted, seconds)

    def wake(self) -> None:
        """Let all followers of this workspace read again; this is rarely needed, and costs each of them little."""
        self._feed.wake()


class Subscriptions:
    """All followers of a server's workspaces."""

    def __init__(self, store: SequencedStore, limit: int, encode: Encode) -> None:
        """`encode` encodes an event for followers; it is called once for an event, however many follow."""
        self._store, self._limit, self._encode = store, limit, encode
        self._feeds: dict[str, Feed] = {}
        self.count = 0
        self.stopping = False

    def open(self, topic: str, after: int | None, wanted: Filter) -> Subscription:
        """Follow a workspace from a place on, or from its head; call `leave` of the returned follower at the end."""
        if self.count >= self._limit or self.stopping:
            raise TooManySubscribers
        feed = self._feeds.get(topic)
        if feed is None:
            # From now on the store reports commits of other processes to this topic.
            self._store.known_head(topic)
            head = self._store.head(topic).sequence
            # Another follower may have come while the head was read.
            feed = self._feeds.get(topic)
            if feed is None:
                feed = self._feeds[topic] = Feed(self._store, topic, head, self._encode)
                if self._store.known_head(topic) > head and not self._store.inline:
                    fibers.start(feed.look_if_possible)
        feed.followers += 1
        self.count += 1
        return Subscription(feed, feed.last if after is None else after, wanted, lambda: self._leave(feed))

    def hear(self, topic: str, records: Sequence[Settled]) -> None:
        """Add records that were committed; a listener for the coordinator."""
        feed = self._feeds.get(topic)
        if feed is not None:
            feed.hear(records)

    def look(self) -> None:
        """Read what other processes may have committed."""
        for feed in self._feeds.values():
            feed.look()

    def look_at(self, topic: str) -> None:
        """Read what other processes have committed to a workspace."""
        feed = self._feeds.get(topic)
        if feed is not None:
            feed.look()

    def begin_stop(self) -> None:
        """Wake all followers; they end with their cursor."""
        self.stopping = True
        for feed in self._feeds.values():
            feed.wake()

    def _leave(self, feed: Feed) -> None:
        self.count -= 1
        feed.followers -= 1
        if not feed.followers:
            self._feeds.pop(feed.topic, None)
