"""Simulation of a plan before agents are paid for it: the real commands and reducers under a simulated clock.

Agents claim, work for the assumed time, and complete; gates are approved after a while. Nothing is guessed about which
task opens when: the code that will run the plan decides it here too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import AddArtifact, ClaimNext, CompleteClaim, HeartbeatClaim
from redkey.commands.command import Command
from redkey.commands.decision import Refused
from redkey.commands.registry import CreateQueue, CreateWorkspace, GrantRole, RegisterAgent
from redkey.commands.workflows import ApproveGate
from redkey.ledger import content
from redkey.ledger.ports import Content, SequencedStore
from redkey.plans.graph import critical_path, levels
from redkey.plans.model import Plan, read_plan
from redkey.reducers.world import World
from redkey.services.outcome import Settled
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.services.unit_of_work import TopicWork
from redkey.wire.events import (
    GateApproved,
    GateOpened,
    TaskAvailable,
    TaskCancelled,
    TaskClaimed,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    WorkflowCompleted,
    WorkflowFailed,
)
from redkey.wire.ids import parse_stream, ulid
from redkey.wire.names import role_id

_QUEUE = "queue_simulation"
# Simulated agents take the longest lease there is, and send a heartbeat when more than half of it has passed.
_LEASE_SECONDS = 86_400
_HEARTBEAT_SECONDS = 50_000


class SimulatedClock:
    """A clock that the simulation sets."""

    _START = 1_767_225_600 * 1_000_000_000  # 2026-01-01T00:00:00Z

    def __init__(self) -> None:
        self._passed = 0

    def wall(self) -> int:
        return self._START + self._passed

    def monotonic(self) -> int:
        return self._passed

    def go_to(self, seconds: float) -> None:
        self._passed = max(self._passed, int(seconds * 1_000_000_000))


class Assumptions(msgspec.Struct, frozen=True):
    """The assumptions of a simulation: how many agents have each role, how long each task and approval takes."""

    agents: Mapping[str, int]
    seconds: Mapping[str, float]
    each_seconds: float = 60.0
    gate_seconds: float = 0.0

    def agents_of(self, role: str) -> int:
        return self.agents.get(role, 1)

    def seconds_of(self, task_id: str) -> float:
        return self.seconds.get(task_id, self.each_seconds)


class RoleReport(msgspec.Struct, rename="camel"):
    """The results of one role. Waiting is the time in which available tasks had no free agent of the role."""

    agents: int
    tasks: int = 0
    busy_seconds: float = 0.0
    utilisation: float = 0.0
    waited_seconds: float = 0.0
    longest_wait_seconds: float = 0.0
    most_waiting: int = 0


class Report(msgspec.Struct, rename="camel"):
    """The result of a simulation."""

    finished: bool
    makespan_seconds: float
    critical_path: list[str]
    critical_path_seconds: float
    roles: dict[str, RoleReport]
    # The role whose tasks waited longest for a free agent; empty if none waited.
    bottleneck: str
    # How long tasks that could have opened waited because of maxParallelTasks.
    waited_for_room_seconds: float
    most_at_work: int
    levels: int
    records: int
    # Tasks that were never done: no agent has their role, their deadline passed, or they wait for such a task.
    left: list[str]


def simulate(plan: dict[str, Any], assumed: Assumptions, store: SequencedStore, clock: SimulatedClock) -> Report:
    """Run a valid plan on an empty store and return the result."""
    run = _Simulation(plan, assumed, store, clock)
    run.begin()
    run.go()
    return run.report()


class _Ids:
    """Counts up ids, so that the same simulation gives the same ledger."""

    def __init__(self) -> None:
        self._count = 0

    def ulid(self) -> str:
        self._count += 1
        return ulid(0, self._count.to_bytes(10))

    def nonce(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(content.NONCE_BYTES)


class _Simulation:
    def __init__(
        self, plan: dict[str, Any], assumed: Assumptions, store: SequencedStore, clock: SimulatedClock
    ) -> None:
        self._value, self._plan = plan, read_plan(plan)
        self._assumed, self._store, self._clock, self._ids = assumed, store, clock, _Ids()
        self._world = World()
        self._topic = store.create_topic()
        workspace_id = "wk_" + self._ids.ulid()
        self._workspace_id = workspace_id
        # The approver, who must not be one of the workers.
        self._admin = Actor(workspace_id, "key_" + self._ids.ulid(), frozenset({"admin"}))
        self._approver = Actor(workspace_id, "key_" + self._ids.ulid(), frozenset({"admin"}))
        self._tasks = {task.id: task for task in self._plan.tasks}
        self._roles = {role: RoleReport(assumed.agents_of(role)) for role in self._plan.roles_by_id()}
        self._idle: dict[str, deque[str]] = {role: deque() for role in self._roles}
        # role -> available tasks that no agent has claimed yet, and since when each task has been available.
        self._waiting: dict[str, int] = defaultdict(int)
        self._since: dict[str, float] = {}
        self._names: dict[str, str] = {}
        self._opened: dict[str, float] = {}
        self._done_at: dict[str, float] = {}
        self._events: list[tuple[float, int, str, tuple[str, ...]]] = []
        self._planned = 0
        self._now = 0.0
        self._at_work = self._most_at_work = 0
        self._ended_at, self._finished = -1.0, False

    def begin(self) -> None:
        """Create a workspace, its agents, and the run."""
        self._do(CreateWorkspace(self._workspace_id))
        self._do(CreateQueue(_QUEUE, {"max_live_claims": 1}))
        roles, documents = missing_roles(self._plan, (), self._ids.nonce)
        for role, document in zip(roles, documents, strict=True):
            self._do(role, contents=(document,))
        for name, capabilities in _capabilities(self._plan).items():
            for number in range(self._roles[name].agents):
                self._register(name, number, capabilities)
        prepared = prepare(self._value, self._ids.nonce)
        self._do(start_command(prepared, "wf_" + self._ids.ulid(), _QUEUE), contents=prepared.contents)

    def _register(self, role: str, number: int, capabilities: tuple[str, ...]) -> None:
        agent_id = "agt_" + self._ids.ulid()
        card = content.document({"name": f"{role} {number}"}, self._ids.nonce())
        slug = f"sim-{len(self._world.agents) + 1}"
        self._do(RegisterAgent(agent_id, slug, content.ref(card), capabilities), contents=(card,))
        self._do(GrantRole(role, agent_id))
        self._idle[role].append(agent_id)

    def go(self) -> None:
        """Advance time from one event to the next until nothing is left to happen."""
        self._claim_all()
        while self._events:
            self._now, _, kind, subject = heappop(self._events)
            self._clock.go_to(self._now)
            if kind == "complete":
                self._complete(*subject)
            elif kind == "approve":
                self._do(ApproveGate(subject[0]), self._approver)
            else:
                self._do(HeartbeatClaim(subject[0]))
            self._claim_all()

    def _claim_all(self) -> None:
        """Let every free agent whose role has an available task claim one."""
        for role, idle in self._idle.items():
            while idle and self._waiting[role]:
                self._claim(role, idle.popleft())

    def _claim(self, role: str, agent_id: str) -> None:
        records = self._do(ClaimNext(_QUEUE, agent_id, _LEASE_SECONDS))
        events = ((one.event.payload, one.event.stream.stream_id) for one in records)
        won, stream_id = next((payload, place) for payload, place in events if isinstance(payload, TaskClaimed))
        claim_id, key = won.claim_id, self._names[parse_stream(stream_id).subject]
        seconds, report = self._assumed.seconds_of(key), self._roles[role]
        waited = self._now - self._since.pop(key)
        self._waiting[role] -= 1
        self._at_work += 1
        self._most_at_work = max(self._most_at_work, self._at_work)
        report.tasks += 1
        report.busy_seconds += seconds
        report.waited_seconds += waited
        report.longest_wait_seconds = max(report.longest_wait_seconds, waited)
        for beat in range(1, int(seconds / _HEARTBEAT_SECONDS) + 1):
            self._plan_for(beat * _HEARTBEAT_SECONDS, "heartbeat", claim_id)
        self._plan_for(seconds, "complete", claim_id, role, agent_id, key)

    def _complete(self, claim_id: str, role: str, agent_id: str, key: str) -> None:
        self._at_work -= 1
        self._leave_outputs(claim_id, key)
        self._idle[role].append(agent_id)
        self._do(CompleteClaim(claim_id))

    def _leave_outputs(self, claim_id: str, key: str) -> None:
        """Add the artifacts that a task must have before it is complete."""
        for name in self._tasks[key].output_names():
            document = content.document({"name": name}, self._ids.nonce())
            artifact_id, size = "art_" + self._ids.ulid(), len(document.data)
            artifact = AddArtifact(claim_id, artifact_id, name, content.ref(document), document.sha256, size)
            self._do(artifact, contents=(document,))

    def _hear(self, records: list[Settled]) -> None:
        """Note what was opened, approved and ended."""
        for one in records:
            subject = parse_stream(one.event.stream.stream_id).subject
            match one.event.payload:
                case TaskCreated() as created:
                    self._names[subject] = created.plan_task or ""
                    self._opened[self._names[subject]] = self._now
                case TaskAvailable():
                    self._offer(self._names[subject])
                case TaskComplete() if not self._tasks[self._names[subject]].approval_gate:
                    self._done_at[self._names[subject]] = self._now
                case TaskFailed() | TaskCancelled():
                    self._withdraw(self._names[subject])
                case GateOpened() as gate:
                    self._plan_for(self._assumed.gate_seconds, "approve", gate.gate_id)
                case GateApproved() as approved:
                    self._done_at[self._names[approved.task_id or ""]] = self._now
                case WorkflowCompleted() | WorkflowFailed() as ended:
                    self._ended_at, self._finished = self._now, isinstance(ended, WorkflowCompleted)

    def _offer(self, key: str) -> None:
        role = role_id(self._tasks[key].role)
        report = self._roles[role]
        self._since[key] = self._now
        self._waiting[role] += 1
        report.most_waiting = max(report.most_waiting, self._waiting[role] - len(self._idle[role]))

    def _withdraw(self, key: str) -> None:
        """Note a task that failed by its deadline; if no agent had it yet, none will claim it."""
        if self._since.pop(key, None) is not None:
            self._waiting[role_id(self._tasks[key].role)] -= 1

    def _plan_for(self, seconds: float, kind: str, *subject: str) -> None:
        self._planned += 1
        heappush(self._events, (self._now + seconds, self._planned, kind, subject))

    def _do(self, command: Command, caller: Actor | None = None, contents: tuple[Content, ...] = ()) -> list[Settled]:
        """Run one command in a unit of its own, as the coordinator would; return everything that was recorded with it.

        A command that comes too late, such as a completion after the task's deadline, is refused without effect.
        """
        with self._store.write(self._topic) as unit:
            work = TopicWork(unit, self._topic, self._world, self._ids)
            work.run_due()
            with suppress(Refused):
                decision = work.judge(command, caller or self._admin)
                if decision.drafts:
                    work.note(decision.drafts)
            work.finish()
            unit.put_content(self._topic, contents)
        self._hear(work.records)
        return work.records

    def report(self) -> Report:
        """Collect the figures that a planner needs."""
        makespan = self._ended_at if self._ended_at >= 0 else self._now
        places = {task.id: index for index, task in enumerate(self._plan.tasks)}
        upstream = [[places[key] for key in task.depends_on] for task in self._plan.tasks]
        weights = [self._weight(task.id) for task in self._plan.tasks]
        path = critical_path(upstream, weights)
        for report in self._roles.values():
            worked = report.agents * makespan
            report.utilisation = round(report.busy_seconds / worked, 4) if worked else 0.0
        waited = {role: report.waited_seconds for role, report in self._roles.items()}
        slowest = max(waited, key=lambda role: waited[role], default="")
        return Report(
            finished=self._finished,
            makespan_seconds=makespan,
            critical_path=[self._plan.tasks[place].id for place in path],
            critical_path_seconds=sum(weights[place] for place in path),
            roles=self._roles,
            bottleneck=slowest if waited.get(slowest) else "",
            waited_for_room_seconds=self._waited_for_room(),
            most_at_work=self._most_at_work,
            levels=len(levels(upstream)),
            records=self._world.sequence,
            left=[task.id for task in self._plan.tasks if task.id not in self._done_at],
        )

    def _weight(self, key: str) -> float:
        gate = self._assumed.gate_seconds if self._tasks[key].approval_gate else 0.0
        return self._assumed.seconds_of(key) + gate

    def _waited_for_room(self) -> float:
        """Return the time from when everything a task depends on was done until it was opened."""
        total = 0.0
        for key, opened in self._opened.items():
            ready = max((self._done_at[above] for above in self._tasks[key].depends_on), default=0.0)
            total += opened - ready
        return total


def _capabilities(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the capabilities of each role's agents: everything that its tasks require."""
    asked: dict[str, dict[str, None]] = {role: {} for role in plan.roles_by_id()}
    for task in plan.tasks:
        asked[role_id(task.role)].update(dict.fromkeys(task.required_capabilities))
    return {role: tuple(names) for role, names in asked.items()}
