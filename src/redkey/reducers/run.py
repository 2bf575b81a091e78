"""A run: one workflow with its plan, step by step, as the world holds it while it lives."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify

from redkey.plans.graph import downstream
from redkey.plans.structure import PlanTask, Structure
from redkey.reducers.entities import PRIORITIES, Step, Workflow


class Run:
    """A workflow, the structure it follows, and where each step stands. The header and touched steps are rows."""

    __slots__ = ("active", "broken", "dependents", "extras", "places", "plan", "ready", "steps", "waits", "workflow")

    def __init__(self, workflow: Workflow, plan: Structure, steps: Iterable[Step] = ()) -> None:
        self.workflow, self.plan = workflow, plan
        self.places = {task.id: index for index, task in enumerate(plan.tasks)}
        self.dependents = downstream([task.depends_on for task in plan.tasks])
        self.steps = [Step(index) for index in range(len(plan.tasks))]
        # For each step, how many of those it depends on are not done, and how many of them will never be.
        self.waits = [len(task.depends_on) for task in plan.tasks]
        self.broken = [0] * len(plan.tasks)
        for step in steps:
            self.steps[step.index] = step
            if step.state == "done":
                _add(self.waits, self.dependents[step.index], -1)
            elif step.state in ("failed", "dropped"):
                _add(self.broken, self.dependents[step.index], 1)
        # The steps that may open as soon as there is room, by (priority, place in the plan); stale ones are skipped.
        self.ready = [self.turn(step.index) for step in self.steps if self._is_ready(step)]
        heapify(self.ready)
        # How many tasks are available or at work, or about to be.
        self.active = 0
        # Simple tasks of the run that have not ended: they are cancelled with it.
        self.extras: set[str] = set()

    def _is_ready(self, step: Step) -> bool:
        return step.state == "again" or (step.state == "waiting" and not self.waits[step.index])

    def turn(self, index: int) -> tuple[int, int]:
        """When a step that is ready has its turn: the urgent ones first, then in the order of the plan."""
        return PRIORITIES.index(self.plan.tasks[index].priority), index

    def step_of(self, plan_task: str) -> Step | None:
        """Where the plan's task of that id stands."""
        index = self.places.get(plan_task)
        return self.steps[index] if index is not None else None

    def planned(self, step: Step) -> PlanTask:
        """What the plan says of a step."""
        return self.plan.tasks[step.index]

    @property
    def has_room(self) -> bool:
        """True while the run goes on and the plan lets another task be at work."""
        return self.workflow.state == "running" and self.active < self.plan.max_parallel_tasks

    @property
    def verdict(self) -> str:
        """How the run ends now; empty while something is left to do."""
        workflow = self.workflow
        if workflow.done + workflow.failed + workflow.dropped < workflow.total:
            return ""
        return "failed" if workflow.failed else "completed"


def _add(counts: list[int], places: list[int], amount: int) -> None:
    for place in places:
        counts[place] += amount
