"""Follow a topic: yield each committed record once, in batches.

A follower reads until there are no more records, then sleeps until a commit is announced. It remembers the count of
commits *before* it reads, so a commit between its read and its sleep still wakes it.
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
    """Counts the commits that were announced in this process, and wakes threads that wait for the next one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0
        self.closed = False

    def announce(self) -> None:
        """Count a commit and wake all followers."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_beyond(self, count: int) -> bool:
        """Sleep until there are more commits than `count`; return False if the store was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self.count > count)
            return not self.closed

    def close(self) -> None:
        """Wake all followers for the last time: the store closes."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


def follow(reader: Reader, commits: Commits, topic: str, after: int) -> Iterator[Sequence[Record]]:
    """Yield batches of records after sequence `after`, until the store closes."""
    with suppress(StoreMisused):  # The store was closed during a read.
        while not commits.closed:
            count = commits.count
            if batch := reader.read(topic, after):
                after = batch[-1].sequence
                yield batch
            elif not commits.wait_beyond(count):
                return


class Watch(Protocol):
    """Detects commits of other processes."""

    def changed(self) -> bool:
        """Return whether there was a commit since the last call."""
        ...

    def close(self) -> None:
        """Close the connection to the store."""
        ...


class Poller:
    """Polls for commits of other processes in a thread, and announces them; it runs only while there are followers."""

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
                # Open the watch before the follower's first read, so that no commit in between is missed.
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
        """Stop the thread and wait for its end."""
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
                # Wake the followers: their next read raises the same error, and they report it.
                changed = True
            if changed:
                self._commits.announce()
        watch.close()
