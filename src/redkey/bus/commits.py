"""Group commit: everything decided during one commit shares the next commit.

Commits run in their own thread, so a slow disk does not delay requests that need no commit. Callbacks run in the order
of the decisions, after the commit that contains them; the next commit is already being written meanwhile. A
confirmation may be lost in a crash (its message is then delivered again), so it waits a moment for other writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import orjson
import structlog

from redkey.bus.log import BusLog
from redkey.bus.model import MANY, Write
from redkey.errors import BusRefused, StoreError, StorePoisoned

_log = structlog.get_logger("redkey.bus")
T = TypeVar("T")
Done = Callable[[BusRefused | None], None]
_LAZY_SECONDS = 0.05


class CommitQueue:
    """The writes that wait for the log, and the callbacks that wait for them."""

    def __init__(
        self, log: BusLog, *, on_failure: Callable[[StoreError], None], on_fatal: Callable[[BaseException], None]
    ) -> None:
        self._log, self._on_failure, self._on_fatal = log, on_failure, on_fatal
        self._writes: list[Write] = []
        # Confirmed messages by sequence number, and the agents that confirmed each.
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
        """Commit rows, then call `done` with None, or with the error."""
        if self.stopped:
            done(_unavailable())
            return
        self._writes.extend(writes)
        self._waiting.append(done)
        self._begin()

    def add_taken(self, agent: int, seq: int) -> None:
        """Delete the row of a confirmed message with any later commit."""
        agents = self._taken.get(seq)
        if agents is None:
            agents = self._taken[seq] = []
        agents.append(agent)
        if not self._committing and self._timer is None and not self.stopped:
            self._timer = asyncio.get_running_loop().call_later(_LAZY_SECONDS, self._begin)

    async def aside(self, work: Callable[[], T]) -> T:
        """Run work on the log between two commits."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def stop(self) -> None:
        """Commit what was added; accept nothing after that."""
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
            # Wait one turn of the loop, so that requests that arrived together share a commit.
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
            self._finish(None)
            return
        loop = asyncio.get_running_loop()
        # Not `run_in_executor`: its chain of two futures costs two more turns of the loop for each commit.
        commit = self._thread.submit(self._log.commit, writes)
        commit.add_done_callback(lambda ended: loop.call_soon_threadsafe(self._finish, ended.exception()))

    def _finish(self, failure: BaseException | None) -> None:
        """Call the callbacks of a finished commit, while the next commit is being written."""
        done, self._under_way = self._under_way, []
        if failure is not None:
            # What was decided meanwhile is based on what was not written.
            done += self._waiting
            self._waiting, self._writes, self._taken = [], [], {}
            self._fail(failure)
        overlaps = bool(self._writes)
        if overlaps:
            self._commit()
        refused = _unavailable() if failure is not None else None
        for callback in done:
            try:
                callback(refused)
            except Exception as error:
                # An error in one callback must not leave the others waiting forever.
                _log.error("a callback of a commit failed", exc_info=error)
        if overlaps:
            return
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
    return BusRefused("the bus cannot write now; retry with the same id", code="unavailable")
