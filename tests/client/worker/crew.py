"""Workers in threads of the test, with the worlds they need."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redkey.client import Event, RedKey, Tally

PATIENCE_SECONDS = 60.0


class Running:
    """A run in another thread; its tally is there when the block has ended."""

    def __init__(self, rk: RedKey, grace_seconds: float) -> None:
        self.tally = Tally()
        self.error: BaseException | None = None
        self._rk, self._grace_seconds = rk, grace_seconds
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.tally = self._rk.run(grace_seconds=self._grace_seconds)
        except BaseException as error:
            self.error = error


@contextmanager
def working(rk: RedKey, grace_seconds: float = 10.0) -> Iterator[Running]:
    """Run the client's workers for the length of a block, and stop them gracefully."""
    running = Running(rk, grace_seconds)
    running.thread.start()
    try:
        yield running
    finally:
        rk.stop()
        running.thread.join(PATIENCE_SECONDS)
    assert not running.thread.is_alive()
    if running.error is not None:
        raise running.error


def until(rk: RedKey, type: str, task_id: str = "", after: int = 0) -> Event:
    """The first event of a type, about a task; it may have happened already."""
    stream = rk.events.follow(types=type, after=after)
    try:
        return next(event for event in stream if task_id in ("", event.subject.id, event.data.get("taskId")))
    finally:
        stream.close()


def task(rk: RedKey, queue: str = "podcast", **options: Any) -> str:
    """A task on a queue that there may not be yet."""
    if queue not in {one.queue_id.removeprefix("queue_") for one in rk.queues.list()}:
        rk.queues.create(queue)
    return rk.tasks.create(queue, **{"title": "A task", **options}).task_id
