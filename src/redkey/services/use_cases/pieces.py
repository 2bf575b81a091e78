"""Batches: the commands of one request, submitted as a list and answered together.

A batch is started a piece at a time, so that others have their turn in between. While several workspaces write, all
batches together start one piece at a time, and pause after it as long as it took: about half of the server's time is
then left to callers of small requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Generic, TypeVar

from redkey.commands.decision import Refused
from redkey.errors import RedKeyError
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.problems import describe
from redkey.services.submission import Done, Submission
from redkey.shapes.problem import Problem

Part = TypeVar("Part")
T = TypeVar("T")
R = TypeVar("R")
# Makes a command from a part: at once, or beside the event loop.
Begin = Callable[[int, Part], Pending[T] | Coroutine[Any, Any, Pending[T]]]

_PIECE = 16
_SHARED_PIECE = 4


async def in_pieces(
    caller: Caller, parts: Sequence[Part], begin: Begin[Part, T], show: Callable[[T | None, Problem | None], R]
) -> tuple[R, ...]:
    """Return the results of the parts in their order, each shown with its reply or its problem: a part that is refused
    is refused alone.

    Any other failure fails the request: parts that are not recorded yet are given up.
    """

    def result(reply: T | Refused) -> R:
        if not isinstance(reply, Refused):
            return show(reply, None)
        caller.answers_beside_records(reply)
        return show(None, describe(reply))

    return tuple(map(result, await _replies(caller, parts, begin)))


async def _replies(caller: Caller, parts: Sequence[Part], begin: Begin[Part, T]) -> list[T | Refused]:
    # Each part counts as its share of the body.
    caller.body_bytes //= len(parts)
    batch = _Batch[Part, T](caller, parts, begin)
    try:
        while batch.begun < len(parts):
            if caller.means.coordinator.is_shared:
                async with caller.means.batch_turn:
                    started = perf_counter()
                    await batch.begin(_SHARED_PIECE)
                    # Locked until they are recorded, or refused.
                    await batch.settled()
                    await asyncio.sleep(perf_counter() - started)
            else:
                await batch.begin(_PIECE)
                await asyncio.sleep(0)
        await batch.settled()
    except BaseException:
        batch.leave()
        raise
    return batch.replies


class _Batch(Generic[Part, T]):
    """The parts of one request: which are started, and their results."""

    def __init__(self, caller: Caller, parts: Sequence[Part], begin: Begin[Part, T]) -> None:
        self._caller, self._parts, self._begin = caller, parts, begin
        self._found: dict[int, T | Refused] = {}
        self._open: dict[int, tuple[Submission, Done]] = {}
        self._failed: BaseException | None = None
        self._waits: asyncio.Future[None] | None = None
        self.begun = 0

    @property
    def replies(self) -> list[T | Refused]:
        return [self._found[index] for index in range(len(self._parts))]

    async def begin(self, count: int) -> None:
        """Start the next parts."""
        for index in range(self.begun, min(self.begun + count, len(self._parts))):
            self.begun = index + 1
            try:
                pending = self._begin(index, self._parts[index])
                if not isinstance(pending, Pending):
                    pending = await pending
                done = partial(self._settle, index, pending.part)
                self._open[index] = self._caller.enqueue(pending, done), done
            except Refused as refused:
                self._found[index] = refused

    async def settled(self) -> None:
        """Wait until everything that was started has its reply; raise the first failure."""
        if self._open and self._failed is None:
            self._waits = asyncio.get_running_loop().create_future()
            await self._waits
        if self._failed is not None:
            raise self._failed

    def leave(self) -> None:
        """Stop waiting."""
        for submission, done in self._open.values():
            submission.leave(done)

    def _settle(self, index: int, part: str, outcome: Outcome | RedKeyError) -> None:
        del self._open[index]
        try:
            if isinstance(outcome, Outcome):
                self._found[index] = self._caller.take(outcome, part).reply
            elif isinstance(outcome, Refused):
                self._found[index] = outcome
            else:
                self._failed = outcome
        except Exception as failure:
            self._failed = failure
        if (not self._open or self._failed is not None) and self._waits is not None and not self._waits.done():
            self._waits.set_result(None)
