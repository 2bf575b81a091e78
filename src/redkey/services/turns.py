"""Turns: which submissions share the next unit, so that no caller waits for the large work of another workspace.

While only one workspace writes, a unit takes all that has arrived, because one commit for many is cheapest. As soon as
several do, a unit takes from each of them in turn and decides for a few milliseconds, or for as long as a commit takes
on this disk: a caller with one request then waits for at most one such unit, however much others have sent. The size of
a unit is calculated from the times of the last ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator

from redkey.services.submission import Submission

# Units stay small enough that callers do not wait long for a commit that others fill.
BATCH_LIMIT = 512
# How long a unit may decide while several workspaces write; longer only if its commit takes longer.
UNIT_SECONDS = 0.0015
_FEWEST = 4
# How long after the last change of workspace several workspaces count as writing.
_SHARED_SECONDS = 1.0
# How much one unit changes the estimated cost of a submission.
_WEIGHT = 0.25
# The lowest cost of a submission, even if a coarse clock measures none.
_LEAST_SECONDS = 1e-6


class Turns:
    """Submissions that wait for their unit: a line for each workspace, and the workspaces take turns."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # The workspace whose turn is next is first.
        self._lines: dict[str, deque[Submission]] = {}
        self._count = 0
        self._last_topic = ""
        self._shared_until = 0.0
        self._submission_seconds = UNIT_SECONDS / BATCH_LIMIT
        self._commit_seconds = 0.0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Submission]:
        return (submission for line in self._lines.values() for submission in line)

    @property
    def is_shared(self) -> bool:
        """True while several workspaces write."""
        return self._now() < self._shared_until

    @property
    def unit_limit(self) -> int:
        """Return how many submissions the next unit may take."""
        if self._now() >= self._shared_until:
            return BATCH_LIMIT
        seconds = max(UNIT_SECONDS, self._commit_seconds)
        return max(_FEWEST, min(BATCH_LIMIT, int(seconds / self._submission_seconds)))

    def add(self, submission: Submission) -> None:
        """Add a submission that has arrived."""
        topic = submission.topic
        # A tick is not a caller's request.
        if topic != self._last_topic and submission.command is not None:
            if self._last_topic:
                self._shared_until = self._now() + _SHARED_SECONDS
            self._last_topic = topic
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = deque()
        line.append(submission)
        self._count += 1

    def put_back(self, batch: Iterable[Submission]) -> None:
        """Put back submissions that could not be done yet: they come first again, in their order."""
        for submission in reversed([*batch]):
            self._line(submission.topic).appendleft(submission)
            self._count += 1

    def take(self) -> list[Submission]:
        """Take the submissions of the next unit: from every line in turn, in the order of each. One marked `alone` is
        taken alone.
        """
        limit, taken = self.unit_limit, list[Submission]()
        while self._lines and len(taken) < limit:
            topic, line = next(iter(self._lines.items()))
            if line[0].alone and taken:
                break
            submission = line.popleft()
            self._count -= 1
            # The next turn is another workspace's.
            if len(self._lines) > 1 or not line:
                del self._lines[topic]
                if line:
                    self._lines[topic] = line
            taken.append(submission)
            if submission.alone:
                break
        return taken

    def take_of(self, busy: Container[str]) -> list[Submission]:
        """Take the submissions of the next unit for the first workspace that is not busy; empty if there is none."""
        topic = next((topic for topic in self._lines if topic not in busy), None)
        if topic is None:
            return []
        line, limit, taken = self._lines.pop(topic), self.unit_limit, list[Submission]()
        while line and len(taken) < limit and not (line[0].alone and taken):
            taken.append(line.popleft())
            if taken[-1].alone:
                break
        self._count -= len(taken)
        if line:
            # The next turn is another workspace's.
            self._lines[topic] = line
        return taken

    def clear(self, topic: str | None = None) -> list[Submission]:
        """Take everything out, or everything of one workspace."""
        if topic is not None:
            line = self._lines.pop(topic, deque())
            self._count -= len(line)
            return [*line]
        taken = [*self]
        self._lines.clear()
        self._count = 0
        return taken

    def measured(self, count: int, deciding_seconds: float, commit_seconds: float) -> None:
        """Note the times in which a unit's submissions were decided and committed."""
        each = max(deciding_seconds / count, _LEAST_SECONDS)
        self._submission_seconds += (each - self._submission_seconds) * _WEIGHT
        self._commit_seconds += (commit_seconds - self._commit_seconds) * _WEIGHT

    def _line(self, topic: str) -> deque[Submission]:
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = deque()
        return line
