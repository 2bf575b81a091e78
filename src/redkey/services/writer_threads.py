"""Writer threads: units of a store across a network run beside the event loop.

A topic is written by one thread at a time; different topics are written in parallel. A topic whose commit is in doubt
stays busy until the store has resolved the doubt: its requests wait, and other topics continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import cast

from redkey.errors import CommitInDoubt, StoreError, StoreMisused
from redkey.ledger.ports import Doubt, SequencedStore

WRITERS = 4
# The first and the longest pause before asking again how a commit in doubt ended.
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0

# Called on the loop when a unit has ended: with None, or with why it failed.
Ended = Callable[[BaseException | None], None]
# Called on the loop with True if a unit in doubt was committed.
Resolved = Callable[[bool], None]


class WriterThreads:
    """The threads that write for one store, and the topics that are busy."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="redkey-write")
        # Topics whose unit runs, or whose commit is in doubt.
        self.busy: set[str] = set()
        self._running = 0
        self._resolving: set[asyncio.Task[None]] = set()

    @property
    def is_free(self) -> bool:
        """True while another unit may start."""
        return self._running < WRITERS

    def start(self, topic: str, work: Callable[[], None], ended: Ended) -> None:
        """Run a unit of a topic that is not busy; `ended` is called before the topic's next unit."""
        self.busy.add(topic)
        self._running += 1
        running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        running.add_done_callback(partial(self._ended, topic, ended))

    def resolve(self, topic: str, cause: CommitInDoubt, resolved: Resolved) -> None:
        """Find out how a commit ended, however long that takes; the topic stays busy meanwhile."""
        doubt = cast(Doubt, cause.doubt)
        task = asyncio.get_running_loop().create_task(self._resolve(topic, doubt, resolved))
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    def give_up(self) -> None:
        """Stop asking how commits in doubt ended: the server stops."""
        for task in self._resolving:
            task.cancel()

    def _ended(self, topic: str, ended: Ended, running: asyncio.Future[None]) -> None:
        self._running -= 1
        cause = asyncio.CancelledError() if running.cancelled() else running.exception()
        if not isinstance(cause, CommitInDoubt):
            self.busy.discard(topic)
        ended(cause)

    async def _resolve(self, topic: str, doubt: Doubt, resolved: Resolved) -> None:
        loop, pause = asyncio.get_running_loop(), _PAUSE_SECONDS
        while True:
            try:
                outcome = await loop.run_in_executor(self._pool, self._store.resolve, doubt)
                break
            except StoreMisused:
                # The store was closed: the result can no longer be learned here.
                return
            except StoreError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        self.busy.discard(topic)
        resolved(outcome == "committed")
