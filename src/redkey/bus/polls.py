"""Long polls: a question that is answered as soon as there is something to tell, or when its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from redkey.bus.feed import Feed

T = TypeVar("T")
LONGEST_SECONDS = 60.0


class Poll(Generic[T]):
    """Looks again whenever the session has something new; tells once."""

    def __init__(
        self, feed: Feed, look: Callable[[], Sequence[T]], seconds: float, tell: Callable[[Sequence[T]], None]
    ) -> None:
        self._feed, self._look, self._tell = feed, look, tell
        self._timer: asyncio.TimerHandle | None = None
        found = look()
        if found or seconds <= 0 or feed.closed:
            tell(found)
            return
        self._timer = asyncio.get_running_loop().call_later(min(seconds, LONGEST_SECONDS), self._end, ())
        feed.followers.add(self)

    @property
    def waits(self) -> bool:
        return self._timer is not None

    def wake(self) -> None:
        """There may be something."""
        found = self._look()
        if found or self._feed.closed:
            self._end(found)

    def end(self) -> None:
        """Answer with what there is: the bus stops."""
        self._end(self._look())

    def leave(self) -> None:
        """The one who asked is gone."""
        self._feed.followers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, found: Sequence[T]) -> None:
        if self._timer is not None:
            self.leave()
            self._tell(found)
