"""Tasks (all attempts at one thing) and projects (all tasks of one context), computed from attempts.

Both are views that are computed on demand and never stored. A task has the state of its latest attempt, except that a
failure after which another attempt follows does not end it.
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
        """Retries keep their context (seed 001), so the first attempt has it."""
        return self.attempts[0].context_id

    @property
    def terminal(self) -> bool:
        current = self.current
        return current.terminal and not (current.outcome is not None and current.outcome.retry)

    def as_json(self) -> dict[str, Any]:
        """The task with the field names of the seed's reducer cases, and every attempt in full."""
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
            # Counted separately: a crashed machine is not a wrong answer.
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
    attempts_by_task: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        attempts_by_task.setdefault(attempt.task_id, []).append(attempt)
    return [
        Task(task_id, tuple(sorted(tries, key=lambda attempt: attempt.attempt)))
        for task_id, tries in sorted(attempts_by_task.items())
    ]


def projects_of(tasks: Iterable[Task]) -> list[Project]:
    """The projects that tasks belong to, by context."""
    tasks_by_context: dict[str, list[Task]] = {}
    for task in tasks:
        tasks_by_context.setdefault(task.context_id, []).append(task)
    return [Project(context_id, tuple(members)) for context_id, members in sorted(tasks_by_context.items())]
