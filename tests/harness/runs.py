"""Plans and their runs for tests: short plans, a desk that runs them, and shorthands to inspect a run."""

from __future__ import annotations

from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.claims import BlockClaim, ClaimNext, CompleteClaim, FailClaim
from redkey.commands.workflows import ApproveGate, RejectGate
from redkey.plans.model import read_plan
from redkey.plans.validate import validate
from redkey.reducers.entities import Task, Workflow
from redkey.services.outcome import Outcome
from redkey.services.planning import missing_roles, prepare, start_command
from tests.harness.desk import QUEUE, Desk, ref_of

Plan = dict[str, Any]


def step(key: str, *upstream: str, role: str = "writer", **more: Any) -> dict[str, Any]:
    """One valid task of a plan."""
    return {
        "id": key,
        "title": f"Write {key}",
        "role": role,
        "dependsOn": list(upstream),
        "completionCriteria": ["The text has 3 sources"],
        **more,
    }


def plan_of(*tasks: dict[str, Any], parallel: int = 5, attempts: int = 1, on_failure: str = "fail") -> Plan:
    """A plan of these tasks, with every role they name."""
    names = dict.fromkeys([task["role"] for task in tasks])
    return {
        "version": "1.0",
        "name": "a-plan",
        "roles": {name: {"description": f"Does what a {name} does."} for name in names},
        "tasks": list(tasks),
        "policies": {
            "maxParallelTasks": parallel,
            "retry": {"maxAttempts": attempts, "onFailure": on_failure},
        },
    }


class RunDesk(Desk):
    """A desk with one run and workers for it; tasks are named by their ids in the plan."""

    def start(self, plan: Plan, *, workers: int = 1, idem: str = "") -> str:
        """Start the plan, and register workers that have all its roles and capabilities."""
        found = validate(plan)
        assert found.valid, found.errors
        model = read_plan(plan)
        prepared = prepare(plan, self.ids.nonce)
        roles, documents = missing_roles(model, self.world.roles, self.ids.nonce)
        self.run = "wf_" + self.ids.ulid()
        command = start_command(prepared, self.run, QUEUE, roles)
        self.started = self.do(command, contents=(*prepared.contents, *documents), idem=idem)
        able = tuple(dict.fromkeys(name for task in model.tasks for name in task.required_capabilities))
        self.workers = [
            self.agent(f"worker-{number}", *model.roles_by_id(), capabilities=able) for number in range(workers)
        ]
        return self.run

    @property
    def workflow(self) -> Workflow:
        live = self.world.runs.get(self.run)
        found = live.workflow if live is not None else self._past(self.run)
        assert found is not None
        return found

    def _past(self, run: str) -> Workflow | None:
        from redkey.services.past import LedgerPast

        return LedgerPast(self.store, self.topic).workflow(run)

    def planned(self, key: str) -> Task:
        """The current state of the plan's task with this id."""
        return next(task for task in self.world.tasks.values() if task.plan_task == key)

    def states(self) -> dict[str, str]:
        """The state of every task that was opened and is still in memory."""
        return {task.plan_task: task.state for task in self.world.tasks.values() if task.workflow_id == self.run}

    def steps(self) -> dict[str, str]:
        """The state of each step of the live run."""
        run = self.world.runs[self.run]
        return {task.id: run.steps[index].state for index, task in enumerate(run.plan.tasks)}

    def take(self, key: str, worker: int = 0) -> str:
        """A worker's claim on a task of the plan."""
        return self.hold(self.planned(key).task_id, self.workers[worker])

    def finish(self, key: str, worker: int = 0) -> Outcome:
        """A worker completes a task of the plan."""
        return self.do(CompleteClaim(self.take(key, worker)))

    def break_down(self, key: str, kind: str = "error", worker: int = 0) -> Outcome:
        """A worker fails a task of the plan."""
        return self.do(FailClaim(self.take(key, worker), kind, ref_of("it broke")))

    def get_stuck(self, key: str, worker: int = 0) -> Outcome:
        """A worker blocks a task of the plan."""
        return self.do(BlockClaim(self.take(key, worker), "ambiguity", ref_of("unclear")))

    def next_for(self, worker: int = 0) -> Outcome:
        return self.do(ClaimNext(QUEUE, self.workers[worker]))

    def gate_of(self, key: str) -> str:
        """The open gate of a task of the plan."""
        found = self.planned(key).gate_id
        assert found, f"{key} has no open gate"
        return found

    def approve(self, key: str, caller: Actor | None = None) -> Outcome:
        return self.do(ApproveGate(self.gate_of(key)), caller or self.boss)

    def reject(self, key: str, note: str = "", caller: Actor | None = None) -> Outcome:
        return self.do(RejectGate(self.gate_of(key), ref_of(note) if note else None), caller or self.boss)

    @property
    def boss(self) -> Actor:
        """An admin who does no work."""
        return Actor(self.workspace_id, "key_01JTMX9A2B3C4D5E6F7G8H9JKM", frozenset({"admin"}))
