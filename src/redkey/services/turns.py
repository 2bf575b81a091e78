"""Turns: which submissions share the next unit, so that nobody waits for the large work of another workspace.

While one workspace alone writes, a unit takes all that has arrived, because one commit for many is cheapest. As soon
as several do, a unit takes from each of them in turn and decides for a few milliseconds, or for as long as a commit
takes on this disk: whoever sends one request then waits for at most one such unit, however much others have sent. How
much a unit may take follows from what the last ones took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator

from redkey.services.submission import Submission

# Units stay small enough that nobody waits long for a commit that others fill.
BATCH_LIMIT = 512
# How long a unit may decide while several workspaces write; longer only where the commit that ends it takes longer.
UNIT_SECONDS = 0.0015
_FEWEST = 4
# For so long after the last change of workspace they count as several.
_SHARED_SECONDS = 1.0
# How much one unit changes what is known of the cost of a submission.
_WEIGHT = 0.25
# No submission costs less, whatever a clock says that stands still.
_LEAST_SECONDS = 1e-6


class Turns:
    """Submissions that wait for their unit: a line for each workspace, and the workspaces take turns."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # Those whose turn comes next are first.
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
        """How many submissions the next unit may take."""
        if self._now() >= self._shared_until:
            return BATCH_LIMIT
        seconds = max(UNIT_SECONDS, self._commit_seconds)
        return max(_FEWEST, min(BATCH_LIMIT, int(seconds / self._submission_seconds)))

    def add(self, submission: Submission) -> None:
        """A submission has arrived."""
        topic = submission.topic
        # A tick is nobody's request.
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
        """What was taken could not be done yet: it comes first again, in its order."""
        for submission in reversed([*batch]):
            self._line(submission.topic).appendleft(submission)
            self._count += 1

    def take(self) -> list[Submission]:
        """What shares the next unit: from every line in turn, in the order of each. `alone` means alone."""
        limit, taken = self.unit_limit, list[Submission]()
        while self._lines and len(taken) < limit:
            topic, line = next(iter(self._lines.items()))
            if line[0].alone and taken:
                break
            submission = line.popleft()
            self._count -= 1
            # The next turn is another's.
            if len(self._lines) > 1 or not line:
                del self._lines[topic]
                if line:
                    self._lines[topic] = line
            taken.append(submission)
            if submission.alone:
                break
        return taken

    def take_of(self, busy: Container[str]) -> list[Submission]:
        """What shares the next unit of the first workspace in line that is not busy; empty when there is none."""
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
            # The next turn is another's.
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
        """So many submissions were decided in this time, and committed in that."""
        each = max(deciding_seconds / count, _LEAST_SECONDS)
        self._submission_seconds += (each - self._submission_seconds) * _WEIGHT
        self._commit_seconds += (commit_seconds - self._commit_seconds) * _WEIGHT

    def _line(self, topic: str) -> deque[Submission]:
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = deque()
        return line
