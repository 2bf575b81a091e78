"""A live run: one workflow with its plan and the state of each step, as the world holds it."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify

from redkey.plans.graph import downstream
from redkey.plans.structure import PlanTask, Structure
from redkey.reducers.entities import PRIORITIES, Step, Workflow


class Run:
    """A workflow, its plan, and the state of each step. The workflow and each changed step are rows."""

    __slots__ = ("active", "broken", "dependents", "extras", "places", "plan", "ready", "steps", "waits", "workflow")

    def __init__(self, workflow: Workflow, plan: Structure, steps: Iterable[Step] = ()) -> None:
        self.workflow, self.plan = workflow, plan
        self.places = {task.id: index for index, task in enumerate(plan.tasks)}
        self.dependents = downstream([task.depends_on for task in plan.tasks])
        self.steps = [Step(index) for index in range(len(plan.tasks))]
        # For each step: how many of its dependencies are not done, and how many of them never will be.
        self.waits = [len(task.depends_on) for task in plan.tasks]
        self.broken = [0] * len(plan.tasks)
        for step in steps:
            self.steps[step.index] = step
            if step.state == "done":
                _add(self.waits, self.dependents[step.index], -1)
            elif step.state in ("failed", "dropped"):
                _add(self.broken, self.dependents[step.index], 1)
        # The steps that may open as soon as there is room, by (priority, index in the plan); stale entries are skipped.
        self.ready = [self.turn(step.index) for step in self.steps if self._is_ready(step)]
        heapify(self.ready)
        # How many tasks are available, claimed or being worked on, or about to be.
        self.active = 0
        # Simple tasks of the run that have not ended; they are cancelled with it.
        self.extras: set[str] = set()

    def _is_ready(self, step: Step) -> bool:
        return step.state == "again" or (step.state == "waiting" and not self.waits[step.index])

    def turn(self, index: int) -> tuple[int, int]:
        """The sort key of a ready step: urgent ones first, then in the order of the plan."""
        return PRIORITIES.index(self.plan.tasks[index].priority), index

    def step_of(self, plan_task: str) -> Step | None:
        """The step of the plan's task with this id."""
        index = self.places.get(plan_task)
        return self.steps[index] if index is not None else None

    def planned(self, step: Step) -> PlanTask:
        """The plan's task of a step."""
        return self.plan.tasks[step.index]

    @property
    def has_room(self) -> bool:
        """True when the run is running and its plan allows another active task."""
        return self.workflow.state == "running" and self.active < self.plan.max_parallel_tasks

    @property
    def verdict(self) -> str:
        """How the run ends now; empty while work is left."""
        workflow = self.workflow
        if workflow.done + workflow.failed + workflow.dropped < workflow.total:
            return ""
        return "failed" if workflow.failed else "completed"


def _add(counts: list[int], places: list[int], amount: int) -> None:
    for place in places:
        counts[place] += amount
