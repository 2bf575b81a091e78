"""Long polls: a request that is answered as soon as there is a result, or when its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from redkey.bus.feed import SessionFeed

T = TypeVar("T")
LONGEST_SECONDS = 60.0


class Poll(Generic[T]):
    """Looks again at every new record of a session; answers once."""

    def __init__(
        self, feed: SessionFeed, look: Callable[[], Sequence[T]], seconds: float, answer: Callable[[Sequence[T]], None]
    ) -> None:
        self._feed, self._look, self._answer = feed, look, answer
        self._timer: asyncio.TimerHandle | None = None
        results = look()
        if results or seconds <= 0 or feed.closed:
            answer(results)
            return
        self._timer = asyncio.get_running_loop().call_later(min(seconds, LONGEST_SECONDS), self._end, ())
        feed.followers.add(self)

    @property
    def waits(self) -> bool:
        """Whether it is not answered yet."""
        return self._timer is not None

    def wake(self) -> None:
        """Look for a result."""
        results = self._look()
        if results or self._feed.closed:
            self._end(results)

    def end(self) -> None:
        """Answer with the current result, because the bus stops."""
        self._end(self._look())

    def leave(self) -> None:
        """Stop waiting, because the caller disconnected."""
        self._feed.followers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, results: Sequence[T]) -> None:
        if self._timer is not None:
            self.leave()
            self._answer(results)
