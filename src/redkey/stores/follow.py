"""Following a topic: batches of records as they are committed, none missed, none twice.

A follower reads until there is nothing more, then sleeps until a commit is announced. It takes note of the number
of commits *before* it reads, so that one which falls between its reading and its sleep still wakes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from redkey.errors import StoreMisused
from redkey.ledger.ports import Reader
from redkey.ledger.record import Record


class Commits:
    """Counts the commits that this process has heard of, and wakes whoever waits for the next one."""

    def __init__(self) -> None:
        self._heard = threading.Condition()
        self.count = 0
        self.closed = False

    def announce(self) -> None:
        with self._heard:
            self.count += 1
            self._heard.notify_all()

    def wait_beyond(self, count: int) -> bool:
        """Sleep until there are more commits than `count`; false when the store has closed."""
        with self._heard:
            self._heard.wait_for(lambda: self.closed or self.count > count)
            return not self.closed

    def close(self) -> None:
        with self._heard:
            self.closed = True
            self._heard.notify_all()


def follow(reader: Reader, commits: Commits, topic: str, after: int) -> Iterator[Sequence[Record]]:
    """Batches of records of a topic above `after`, until the store closes."""
    with suppress(StoreMisused):  # The store was closed while this was reading.
        while not commits.closed:
            count = commits.count
            if batch := reader.read(topic, after):
                after = batch[-1].sequence
                yield batch
            elif not commits.wait_beyond(count):
                return


class Watch(Protocol):
    """Looks whether anybody has committed."""

    def changed(self) -> bool: ...

    def close(self) -> None: ...


class Poller:
    """Announces what other processes commit, as long as somebody follows: a thread that looks every so often."""

    def __init__(self, commits: Commits, open_watch: Callable[[], Watch], seconds: float) -> None:
        self._commits = commits
        self._open_watch = open_watch
        self._seconds = seconds
        self._guard = threading.Lock()
        self._followers = 0
        self._closed = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        with self._guard:
            self._followers += 1
            if self._followers == 1 and not self._closed:
                if self._thread is not None:
                    self._thread.join()
                # The watch begins before the follower's first reading, so that nothing falls between the two.
                watch, self._stop = self._open_watch(), threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(watch, self._stop), name="redkey-follow", daemon=True
                )
                self._thread.start()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._followers -= 1
            if self._followers == 0:
                self._stop.set()

    def close(self) -> None:
        """End the thread and wait for it."""
        with self._guard:
            self._closed = True
            self._stop.set()
            if self._thread is not None:
                self._thread.join()

    def _run(self, watch: Watch, stop: threading.Event) -> None:
        while not stop.wait(self._seconds):
            try:
                changed = watch.changed()
            except Exception:
                # Whoever follows meets the same trouble at the next reading, and can say so to its caller.
                changed = True
            if changed:
                self._commits.announce()
        watch.close()
