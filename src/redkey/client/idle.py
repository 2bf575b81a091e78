"""Links that wait for their next request: the last used is the next used, and what waits too long is closed."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Generic, Protocol, TypeVar

_MOST = 100
_LONGEST_SECONDS = 30.0


class Keepable(Protocol):
    """An open connection between two requests."""

    def is_alive(self) -> bool: ...

    def close(self) -> None: ...


L = TypeVar("L", bound=Keepable)


class Idle(Generic[L]):
    """The links of one client that nobody uses now. Threads may share it."""

    def __init__(self) -> None:
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._waiting: deque[tuple[float, L]] = deque()
        self._lock = threading.Lock()

    def take(self) -> L | None:
        """A link that is still open, for the caller alone; None when one has to be opened."""
        if self._process != os.getpid():
            # After a fork they are the parent's: two who speak on one connection get each other's answers.
            self._begin()
        while True:
            with self._lock:
                if self._is_closed:
                    raise RuntimeError("the client has been closed")
                if not self._waiting:
                    return None
                since, link = self._waiting.pop()
            if time.monotonic() - since < _LONGEST_SECONDS and link.is_alive():
                return link
            link.close()

    def give(self, link: L) -> None:
        """Keep a link for whoever comes next."""
        now, too_many = time.monotonic(), []
        with self._lock:
            self._waiting.append((now, link))
            while self._waiting and (self._is_over() or now - self._waiting[0][0] >= _LONGEST_SECONDS):
                too_many.append(self._waiting.popleft()[1])
        for one in too_many:
            one.close()

    def close(self) -> None:
        """Close what waits; what is in use is closed when it is given back."""
        with self._lock:
            self._is_closed = True
            waiting = [link for _, link in self._waiting]
            self._waiting.clear()
        for link in waiting:
            link.close()

    def _is_over(self) -> bool:
        return self._is_closed or len(self._waiting) > _MOST
