"""Timers: time passes, and other processes write. What follows from either is decided elsewhere: timers only call.

Leases, deadlines and silent agents are judged by `due` inside the units that record them; nothing here is needed
for an answer to be right, only for it to come when nobody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from redkey.errors import RedKeyError
from redkey.ledger.ports import Clock, SequencedStore
from redkey.services.authority import Authority
from redkey.services.coordinator import Coordinator
from redkey.services.keys import KeyRing
from redkey.services.subscriptions import Subscriptions

# How often to look for commits of other processes while somebody waits for them, and for what is due.
POLL_SECONDS = 0.025
TICK_SECONDS = 0.25
# Ledger time may lag behind the wall clock: what was not due after all is tried again this much later.
_AGAIN_SECONDS = 0.5
_log = structlog.get_logger("redkey.timers")


class Timers:
    """The background of one server."""

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
        # topic -> when it may be ticked again.
        self._ticked: dict[str, float] = {}

    def start(self) -> None:
        """Begin: from now on this server learns of what others commit, and of what is due."""
        loop = asyncio.get_running_loop()

        def beside(topic: str, head: int) -> None:
            with suppress(RuntimeError):  # The loop was closed.
                loop.call_soon_threadsafe(self._heard, topic, head)

        self._unsubscribe = self._store.subscribe(self._heard if self._store.inline else beside)
        for work in (self._tick, self._poll, self._sweep, self._let_go):
            self._tasks.append(asyncio.create_task(work(), name=f"redkey{work.__name__}"))
            self._tasks[-1].add_done_callback(self._ended)

    async def stop(self) -> None:
        """End all of it."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.tick()

    def tick(self) -> None:
        """Let everything that is due be recorded."""
        now = asyncio.get_running_loop().time()
        self._ticked = {topic: until for topic, until in self._ticked.items() if until > now}
        for topic in self._coordinator.due_topics(self._clock.wall(), self._clock.monotonic()):
            if topic not in self._ticked:
                self._ticked[topic] = now + _AGAIN_SECONDS
                self._coordinator.tick(topic)

    async def _poll(self) -> None:
        """Let a store that does not listen by itself look for what others commit, as long as that concerns somebody."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            held = any(one is not None and one.is_awaited for one in (self._authority, self._keys))
            if held or self._coordinator.awaited or self._subscriptions.count:
                self._store.look()

    def _heard(self, topic: str, head: int) -> None:
        """Another process has committed: whoever holds, waits for or follows something of the workspace looks."""
        # Who may not look any more must not see what came after that.
        if self._keys is not None:
            self._keys.look_at(topic)
        if self._authority is not None:
            self._authority.look_at(topic)
        self._coordinator.look_at(topic)
        self._subscriptions.look_at(topic)

    async def _sweep(self) -> None:
        """Look into the workspaces whose ledger is ahead of the clock: the store finds late what is due in them."""
        for topic in self._store.topics():
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
            # Records of acts that no listener was told of, such as a new signer's.
            self._subscriptions.look()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (cause := task.exception()) is not None:
            self._on_fatal(cause)
