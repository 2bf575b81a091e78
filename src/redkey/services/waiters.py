"""Waiting claims for the next task of a queue: those that found none are kept until a task comes or their time is over.

A task that becomes available wakes one waiter that may have it, not all. A task that was offered to a waiter that has
left, or that could not take it after all, is offered to the next: no task stays unclaimed while an eligible waiter
exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import cast

from redkey.commands.claims import ClaimNext, could_claim
from redkey.reducers.changes import Changes, Offer
from redkey.reducers.world import World
from redkey.services.outcome import NO_TASKS, Outcome
from redkey.services.submission import Submission

# The waiters of one queue, first come first; one that is answered or has left is removed at once, at any position.
Line = dict[Submission, None]


class Waiters:
    """Waiting submissions by workspace and queue, first come first served."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, Line]] = {}
        self._stopping = False

    @property
    def topics(self) -> Collection[str]:
        """Return the workspaces with waiters, in the order they began to wait: the order of a set differs in every
        process.
        """
        return self._waiting.keys()

    @property
    def count(self) -> int:
        """Return how many submissions wait."""
        return sum(len(line) for queues in self._waiting.values() for line in queues.values())

    def park(self, submission: Submission, nothing: Outcome) -> None:
        """Keep a submission waiting until there is a task for it, or until its time is over; then its outcome is
        `nothing`.
        """
        loop = asyncio.get_running_loop()
        submission.nothing = nothing
        if submission.deadline <= loop.time() or self._stopping:
            _time_is_over(submission)
            return
        queues = self._waiting.setdefault(submission.topic, {})
        queues.setdefault(_claim(submission).queue_id, {})[submission] = None
        if submission.timer is None:
            submission.timer = loop.call_at(submission.deadline, _time_is_over, submission)
            submission.begin_waiting()

    def wake(self, topic: str, world: World, news: Changes) -> list[Submission]:
        """Return the submissions that should try again now: one per offered task, all if eligibility has changed."""
        offers, news.offers = news.offers, []
        reopened, news.reopened = news.reopened, False
        queues = self._waiting.get(topic)
        if queues is None:
            return []
        woken: list[Submission] = []
        if reopened:
            woken += [one for line in queues.values() for one in line]
            queues.clear()
        for offer in offers:
            if world.is_offered(offer):
                woken += _take(queues.get(offer.queue_id, {}), offer, world)
        self._tidy(topic)
        return woken

    def leave(self, submission: Submission) -> None:
        """Remove a submission that was answered, or whose caller has left."""
        if submission.timer is not None:
            submission.timer.cancel()
        self._waiting.get(submission.topic, {}).get(_claim(submission).queue_id, {}).pop(submission, None)
        self._tidy(submission.topic)

    def _tidy(self, topic: str) -> None:
        """Remove lines and workspaces without waiters."""
        queues = self._waiting.get(topic, {})
        for queue_id in [queue_id for queue_id, line in queues.items() if not line]:
            del queues[queue_id]
        if not queues:
            self._waiting.pop(topic, None)

    def stop(self) -> None:
        """Answer all waiters; from now on none is kept waiting."""
        self._stopping = True
        waiting = [one for queues in self._waiting.values() for line in queues.values() for one in line]
        for submission in waiting:
            _time_is_over(submission)


def _claim(submission: Submission) -> ClaimNext:
    """Return what a submission waits for: only claims for the next task do."""
    return cast(ClaimNext, submission.command)


def _take(line: Line, offer: Offer, world: World) -> list[Submission]:
    """Return the first in line that may have what is offered."""
    for one in line:
        if not one.over and could_claim(world, _claim(one).agent_id, offer.queue_id, offer.requirement):
            del line[one]
            one.offer = offer
            return [one]
    return []


def _time_is_over(submission: Submission) -> None:
    if not submission.over:
        submission.settle(submission.nothing or Outcome(answer=NO_TASKS))
