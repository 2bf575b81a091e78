"""Timers: call the rest of the server when time passes and when other processes write. They decide nothing.

Leases, deadlines and silent agents are judged by `due` inside the units that record them. Replies are right without
timers; timers only make things happen when no request comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import structlog

from redkey import fibers
from redkey.errors import RedKeyError, StoreError, StorePoisoned
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.authority import Authority
from redkey.services.coordinator import Coordinator
from redkey.services.keys import KeyRing
from redkey.services.subscriptions import Subscriptions

# How often to look for commits of other processes while there are waiters, and for what is due.
POLL_SECONDS = 0.025
TICK_SECONDS = 0.25
# Ledger time may lag behind the wall clock: what was not due after all is tried again after this time.
_AGAIN_SECONDS = 0.5
# When to read the commits of others again, after the store could not be read.
_NEWS_SECONDS = 1.0
_log = structlog.get_logger("redkey.timers")


class Timers:
    """The tasks that a server runs in the background."""

    def __init__(
        self,
        store: SequencedStore,
        coordinator: Coordinator,
        subscriptions: Subscriptions,
        clock: Clock,
        idle_seconds: float,
        on_fatal: Callable[[BaseException], None],
        authority: Authority | None = None,
        keys: KeyRing | None = None,
    ) -> None:
        self._store, self._coordinator, self._subscriptions = store, coordinator, subscriptions
        self._clock, self._idle_seconds, self._on_fatal = clock, idle_seconds, on_fatal
        self._authority, self._keys = authority, keys
        self._unsubscribe: Callable[[], None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        # True while a store across a network cannot be reached.
        self._is_away = False
        # Workspaces whose commits from other processes are being read, and whether more came meanwhile.
        self._reading: dict[str, bool] = {}
        # topic -> when it may be ticked again.
        self._ticked: dict[str, float] = {}

    def start(self) -> None:
        """Start: from now on this server notices commits of others, and what is due."""
        loop = asyncio.get_running_loop()

        def beside(topic: str, head: int) -> None:
            with suppress(RuntimeError):  # The loop was closed.
                loop.call_soon_threadsafe(self._heard, topic, head)

        self._unsubscribe = self._store.subscribe(self._heard if self._store.inline else beside)
        for work in (self._tick, self._poll, self._sweep, self._let_go):
            self._tasks.append(asyncio.create_task(work(), name=f"redkey{work.__name__}"))
            self._tasks[-1].add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop all background tasks."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            with self._unless_away():
                self.tick()
                self._is_away = False

    def tick(self) -> None:
        """Record everything that is due."""
        now = asyncio.get_running_loop().time()
        self._ticked = {topic: until for topic, until in self._ticked.items() if until > now}
        for topic in self._coordinator.due_topics(self._clock.wall(), self._clock.monotonic()):
            if topic not in self._ticked:
                self._ticked[topic] = now + _AGAIN_SECONDS
                self._coordinator.tick(topic)

    async def _poll(self) -> None:
        """Make a store that does not listen by itself look for commits of others, while that concerns a caller."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            held = any(one is not None and one.is_awaited for one in (self._authority, self._keys))
            if held or self._coordinator.awaited or self._subscriptions.count:
                with self._unless_away():
                    self._store.look()

    def _heard(self, topic: str, head: int) -> None:
        """Update callers that hold, wait for or follow something of a workspace that another process has changed."""
        if self._store.inline:
            self._look_all(topic)
        elif topic in self._reading:
            self._reading[topic] = True
        else:
            fibers.start(self._read_news, topic)

    def _read_news(self, topic: str) -> None:
        """Read until there is no more: each read of a network store waits for a response."""
        self._reading[topic] = True
        try:
            while self._reading[topic]:
                self._reading[topic] = False
                self._look_all(topic)
        except StoreError as failure:
            # The store reports a commit once.
            _log.warning("news of other servers cannot be read now", topic=topic, code=failure.code)
            if not self._coordinator.stopping:
                asyncio.get_running_loop().call_later(_NEWS_SECONDS, self._heard, topic, 0)
        finally:
            del self._reading[topic]

    def _look_all(self, topic: str) -> None:
        # A caller that lost its authority must not see what came after that.
        if self._keys is not None:
            self._keys.look_at(topic)
        if self._authority is not None:
            self._authority.look_at(topic)
        self._coordinator.look_at(topic)
        self._subscriptions.look_at(topic)

    async def _sweep(self) -> None:
        """Find what is due in workspaces whose ledger is ahead of the clock: the store finds it late."""
        topics: Sequence[str] = ()
        with self._unless_away():
            topics = self._store.topics()
        for topic in topics:
            try:
                if self._store.head(topic).timestamp > self._clock.wall():
                    self._coordinator.peek(topic)
            except RedKeyError as cause:
                _log.error("a workspace cannot be read", topic=topic, code=cause.code, reason=cause.message)
            await asyncio.sleep(0)

    async def _let_go(self) -> None:
        while True:
            await asyncio.sleep(self._idle_seconds)
            self._coordinator.let_go_idle()
            # Records of acts that no listener got, such as a new signer's.
            with self._unless_away():
                self._subscriptions.look()

    @contextmanager
    def _unless_away(self) -> Iterator[None]:
        """Keep the timers running while the database cannot be reached: they ask it again the next time."""
        try:
            yield
        except StorePoisoned:
            raise
        except StoreError as failure:
            if self._store.inline:
                raise
            if not self._is_away:
                _log.warning("the store cannot be read; timers wait for it", code=failure.code, reason=failure.message)
            self._is_away = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (cause := task.exception()) is not None:
            self._on_fatal(cause)
