"""Who waits for work: claims for the next task of a queue that found none, kept until one comes or time is over.

A task that becomes available wakes one waiter who may have it, not all. What was offered to a waiter that is gone,
or that could not take it after all, is offered to the next: no task lies there while somebody eligible waits.
"""

from __future__ import annotations

import asyncio
from collections import deque

from redkey.commands.claims import ClaimNext, could_claim
from redkey.reducers.world import Offer, World
from redkey.services.outcome import NO_TASKS, Outcome
from redkey.services.submission import Submission


class Waiters:
    """Waiting submissions by workspace and queue, first come first served."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, deque[Submission]]] = {}
        self._stopping = False

    @property
    def topics(self) -> set[str]:
        """The workspaces in which somebody waits."""
        return set(self._waiting)

    @property
    def count(self) -> int:
        """How many wait, those who have just gone included."""
        return sum(len(waiting) for queues in self._waiting.values() for waiting in queues.values())

    def park(self, submission: Submission) -> None:
        """Keep a caller waiting until there is something for it, or until its time is over."""
        loop = asyncio.get_running_loop()
        if submission.deadline <= loop.time() or self._stopping:
            _time_is_over(submission)
            return
        queues = self._waiting.setdefault(submission.topic, {})
        queues.setdefault(submission.command.queue_id, deque()).append(submission)
        if submission.timer is None:
            submission.timer = timer = loop.call_at(submission.deadline, _time_is_over, submission)
            submission.future.add_done_callback(lambda _: timer.cancel())

    def wake(self, topic: str, world: World) -> list[Submission]:
        """Those who should ask again now: one for each task that was offered, all when the rules have changed."""
        offered, world.offered = world.offered, []
        reopened, world.reopened = world.reopened, False
        queues = self._waiting.get(topic)
        if queues is None:
            return []
        woken: list[Submission] = []
        if reopened:
            woken += [one for waiting in queues.values() for one in waiting if not one.future.done()]
            queues.clear()
        for offer in offered:
            if world.first_offer(*offer) is not None:
                woken += self._take(queues, offer, world)
        for queue_id in [queue_id for queue_id, waiting in queues.items() if not waiting]:
            del queues[queue_id]
        if not queues:
            del self._waiting[topic]
        return woken

    def _take(self, queues: dict[str, deque[Submission]], offer: Offer, world: World) -> list[Submission]:
        """The first in the queue who may have what is offered; those who are gone leave it."""
        waiting = queues.get(offer.queue_id, deque())
        kept: list[Submission] = []
        found: list[Submission] = []
        while waiting and not found:
            one = waiting.popleft()
            command: ClaimNext = one.command
            if one.future.done():
                continue
            if could_claim(world, command.agent_id, offer.queue_id, offer.requirement):
                one.offer = offer
                found.append(one)
            else:
                kept.append(one)
        waiting.extendleft(reversed(kept))
        return found

    def stop(self) -> None:
        """Answer everybody; from now on nobody is kept waiting."""
        self._stopping = True
        for queues in self._waiting.values():
            for waiting in queues.values():
                for submission in waiting:
                    _time_is_over(submission)
        self._waiting.clear()


def _time_is_over(submission: Submission) -> None:
    if not submission.future.done():
        submission.future.set_result(Outcome(answer=NO_TASKS))
