"""What attempts add up to: tasks (all attempts at one thing) and projects (all tasks of one context).

Both are views, worked out from attempts when somebody asks; nothing is kept twice. A task is what its latest
attempt is, except that a failure after which another attempt follows is not its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from redkey.reducers.stream import Attempt


class Task(msgspec.Struct, frozen=True):
    """A task: its attempts, by number."""

    task_id: str
    attempts: tuple[Attempt, ...]

    @property
    def current(self) -> Attempt:
        return self.attempts[-1]

    @property
    def context_id(self) -> str:
        """Retries keep their context (seed 001), so the first attempt says it."""
        return self.attempts[0].context_id

    @property
    def terminal(self) -> bool:
        current = self.current
        return current.terminal and not (current.outcome is not None and current.outcome.retry)

    def as_json(self) -> dict[str, Any]:
        """The task in the words of the seed's reducer cases, and every attempt in full."""
        attempts = {str(attempt.attempt): attempt.as_json() for attempt in self.attempts}
        current = attempts[str(self.current.attempt)]
        return {
            "task_id": self.task_id,
            "context_id": self.context_id,
            "task_state": current["state"],
            "terminal": self.terminal,
            "attempt": current["attempt"],
            "blocked": current["blocked"],
            "verification": current["verification"],
            "artifact_count": current["artifact_count"],
            "artifact_ids": current["artifact_ids"],
            # Apart from each other: a crashed machine is not a wrong answer.
            "failures": sum(
                attempt.outcome is not None and attempt.outcome.kind is not None for attempt in self.attempts
            ),
            "lease_losses": sum(attempt.lease_losses for attempt in self.attempts),
            "attempts": attempts,
        }


class Project(msgspec.Struct, frozen=True):
    """One context: the tasks that share a `context_id`."""

    context_id: str
    tasks: tuple[Task, ...]

    @property
    def terminal(self) -> bool:
        return all(task.terminal for task in self.tasks)

    def as_json(self) -> dict[str, Any]:
        by_state: dict[str, list[str]] = {}
        for task in self.tasks:
            by_state.setdefault(task.current.state, []).append(task.task_id)
        blocked = [task.task_id for task in self.tasks if task.current.blocker is not None]
        artifacts = {key for task in self.tasks for attempt in task.attempts for key in attempt.artifacts}
        return {
            "context_id": self.context_id,
            "task_count": len(self.tasks),
            "tasks": by_state,
            "blocked": bool(blocked),
            "blocked_task_ids": blocked,
            "artifact_count": len(artifacts),
            "artifact_ids": sorted(artifacts),
            "terminal": self.terminal,
        }


def tasks_of(attempts: Iterable[Attempt]) -> list[Task]:
    """The tasks that attempts belong to, by id; the order of the attempts does not matter."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.task_id, []).append(attempt)
    return [
        Task(task_id, tuple(sorted(tries, key=lambda attempt: attempt.attempt)))
        for task_id, tries in sorted(found.items())
    ]


def projects_of(tasks: Iterable[Task]) -> list[Project]:
    """The projects that tasks belong to, by context."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.context_id, []).append(task)
    return [Project(context_id, tuple(members)) for context_id, members in sorted(found.items())]
