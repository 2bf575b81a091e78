"""Group commit: what is decided while one commit is under way shares the next.

Commits run in a thread of their own, so that a slow disk holds up nobody who asks for nothing durable. Whoever waits
is told in the order of the decisions, after the commit that holds theirs. What may be lost without harm (a
confirmation: its message would only be delivered once more) waits for company for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import orjson
import structlog

from redkey.bus.log import Log
from redkey.bus.state import MANY, Write
from redkey.errors import BusRefused, StoreError, StorePoisoned

_log = structlog.get_logger("redkey.bus")
T = TypeVar("T")
Done = Callable[[BusRefused | None], None]
_LAZY_SECONDS = 0.05


class Commits:
    """The queue before the log."""

    def __init__(
        self, log: Log, *, on_failure: Callable[[StoreError], None], on_fatal: Callable[[BaseException], None]
    ) -> None:
        self._log, self._on_failure, self._on_fatal = log, on_failure, on_fatal
        self._writes: list[Write] = []
        # Confirmed messages by place, and the agents that confirmed each.
        self._taken: dict[int, list[int]] = {}
        self._waiting: list[Done] = []
        self._under_way: list[Done] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="redkey-bus-log")
        self._committing = False
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopped = False

    def add(self, writes: Sequence[Write], done: Done) -> None:
        """Make rows durable and call `done` with None, or with why they are not."""
        if self.stopped:
            done(_unavailable())
            return
        self._writes.extend(writes)
        self._waiting.append(done)
        self._begin()

    def add_taken(self, agent: int, seq: int) -> None:
        """An agent has confirmed a message: its row may go with any later commit."""
        agents = self._taken.get(seq)
        if agents is None:
            agents = self._taken[seq] = []
        agents.append(agent)
        if not self._committing and self._timer is None and not self.stopped:
            self._timer = asyncio.get_running_loop().call_later(_LAZY_SECONDS, self._begin)

    async def aside(self, work: Callable[[], T]) -> T:
        """Do something with the log between two commits."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def stop(self) -> None:
        """Make durable what was added; nothing is taken after that."""
        if self._writes or self._waiting or self._taken:
            self._begin()
        await self._idle.wait()
        self.stopped = True
        self._thread.shutdown()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._committing:
            self._committing = True
            self._idle.clear()
            # One more turn of the loop: what has arrived together is decided together.
            asyncio.get_running_loop().call_soon(self._commit)

    def _commit(self) -> None:
        writes, self._writes = self._writes, []
        taken, self._taken = self._taken, {}
        for seq, agents in taken.items():
            if len(agents) >= MANY:
                writes.append(("delete_pending_of_message", (seq, orjson.dumps(agents).decode())))
            else:
                writes.extend(("delete_pending", (agent, seq)) for agent in agents)
        self._under_way, self._waiting = self._waiting, []
        if not writes:
            self._tell(None)
            return
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, self._log.commit, writes)
        future.add_done_callback(lambda ended: self._tell(ended.exception()))

    def _tell(self, failure: BaseException | None) -> None:
        done, self._under_way = self._under_way, []
        if failure is not None:
            # What was decided meanwhile stands on what is not there.
            done += self._waiting
            self._waiting, self._writes, self._taken = [], [], {}
            self._fail(failure)
        refused = _unavailable() if failure is not None else None
        for one in done:
            try:
                one(refused)
            except Exception as error:
                # A mistake of ours at one caller must not keep the others waiting for ever.
                _log.error("a caller could not be told of a commit", exc_info=error)
        if self._waiting or self._writes or self._taken:
            asyncio.get_running_loop().call_soon(self._commit)
        else:
            self._committing = False
            self._idle.set()

    def _fail(self, failure: BaseException) -> None:
        if isinstance(failure, StoreError) and not isinstance(failure, StorePoisoned):
            self._on_failure(failure)
        else:
            self.stopped = True
            self._on_fatal(failure)


def _unavailable() -> BusRefused:
    return BusRefused("the bus cannot write now; send it again with the same id", code="unavailable")
