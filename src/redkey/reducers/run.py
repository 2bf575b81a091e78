"""A run: one workflow with its plan, step by step, as the world holds it while it lives."""

from __future__ import annotations

from heapq import heapify

from redkey.plans.graph import downstream
from redkey.plans.structure import PlanTask, Structure
from redkey.reducers.entities import Step, Workflow


class Run:
    """A workflow, the structure it follows, and where each step stands. The header and touched steps are rows."""

    __slots__ = ("active", "dependents", "places", "plan", "ready", "steps", "workflow")

    def __init__(self, workflow: Workflow, plan: Structure) -> None:
        self.workflow, self.plan = workflow, plan
        self.dependents = downstream([task.depends_on for task in plan.tasks])
        self.steps = [Step(workflow.workflow_id, index, len(task.depends_on)) for index, task in enumerate(plan.tasks)]
        self.places = {task.id: index for index, task in enumerate(plan.tasks)}
        self.ready = [index for index, step in enumerate(self.steps) if not step.waits]
        self.active = 0

    def task_of(self, plan_task: str) -> PlanTask | None:
        """The plan's task of that id."""
        index = self.places.get(plan_task)
        return self.plan.tasks[index] if index is not None else None

    def resume_from(self, steps: list[Step], active: int) -> None:
        """Take up the steps as their rows have them: what is done no longer stands before its dependents."""
        for step in steps:
            self.steps[step.index] = step
        for index, task in enumerate(self.plan.tasks):
            self.steps[index].waits = sum(self.steps[upstream].state != "done" for upstream in task.depends_on)
        self.ready = [step.index for step in self.steps if step.state in ("waiting", "again") and not step.waits]
        heapify(self.ready)
        self.active = active
