"""Idle links: the last used link is reused first, and a link that is idle for too long is closed."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Generic, Protocol, TypeVar

from redkey.client.flow import Broken

_MOST = 100
_LONGEST_SECONDS = 30.0


class Keepable(Protocol):
    """An open connection between two requests."""

    @property
    def keeps_open(self) -> bool: ...

    def is_alive(self) -> bool: ...

    def close(self) -> None: ...


L = TypeVar("L", bound=Keepable)


class Idle(Generic[L]):
    """The unused links of one client. Threads may share it."""

    def __init__(self) -> None:
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._waiting: deque[tuple[float, L]] = deque()
        self._lock = threading.Lock()

    def take(self) -> L | None:
        """Take out a link that is still open; None if there is none."""
        if self._process != os.getpid():
            # After a fork the links belong to the parent: two processes on one connection would read each other's
            # answers.
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
        """Keep a link for the next request; close it if the server is about to close it."""
        if not link.keeps_open:
            link.close()
            return
        now, too_many = time.monotonic(), []
        with self._lock:
            self._waiting.append((now, link))
            while self._waiting and (self._is_over() or now - self._waiting[0][0] >= _LONGEST_SECONDS):
                too_many.append(self._waiting.popleft()[1])
        for surplus in too_many:
            surplus.close()

    def close(self) -> None:
        """Close all idle links; links in use are closed when they are returned."""
        with self._lock:
            self._is_closed = True
            waiting = [link for _, link in self._waiting]
            self._waiting.clear()
        for link in waiting:
            link.close()

    def _is_over(self) -> bool:
        return self._is_closed or len(self._waiting) > _MOST


def give_up(link: Keepable | None, failure: BaseException) -> Broken:
    """Close the link of a failed exchange and return why it failed; re-raise errors that are not network failures.

    Bytes of this answer may still arrive on the link, and the next request must not read them as its own. The reason
    never contains headers, and so no key.
    """
    if link is not None:
        link.close()
    # A name that cannot be a host raises UnicodeError.
    if not isinstance(failure, OSError | UnicodeError):
        raise failure
    if isinstance(failure, TimeoutError):
        return Broken("no answer in time", timed_out=True)
    return Broken(str(failure) or type(failure).__name__)
