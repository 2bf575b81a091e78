"""The world: what is live in one workspace, computed by folding its records and from nothing else.

Entities are plain structs that reducers change in place. The rows to write and the agents to wake are collected
separately (`changes`). What must follow from the records is on the `agenda`; what becomes due at a time is among the
`timers`; `redkey.commands.due` turns both into wires. A task that has ended stays as a tombstone for a while and then
lives in rows only, so memory grows with the live work and not with the history.

Decisions only read. To save them a search, the fold keeps the top entry of every heap of offers valid: it drops stale
entries that reach the top. Timers depend on the clock and not on records, so the unit of work drops stale ones
(`drop_timers`).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

import msgspec

from redkey.reducers.changes import Changes, Offer
from redkey.reducers.entities import (
    Agent,
    Definition,
    Gate,
    Key,
    Message,
    Miss,
    Party,
    Pending,
    Phase,
    Project,
    Queue,
    Requirement,
    Role,
    Task,
    Workspace,
)
from redkey.reducers.run import Run
from redkey.wire.ids import parse_stream

SECOND = 1_000_000_000
# How long ended tasks stay: long enough for late questions; a busy workspace ends thousands of tasks a second.
TOMBSTONE_NANOSECONDS = 60 * SECOND
LOST_AFTER_NANOSECONDS = 180 * SECOND
IDEMPOTENCY_NANOSECONDS = 24 * 3600 * SECOND
IDEMPOTENCY_LIMIT = 250_000
# A heap with fewer entries than this is not searched for stale ones.
SMALL_HEAP = 1024
# The newest version of the workspace rules that this code supports. A workspace has a version of the rules, so that its
# old records always fold to the same state; only an operator raises it.
RULES = 2


# The roles that are notified of a block, by blocker type, unless the workspace has its own policy. The supervisor role
# and the humans always get a copy.
BLOCK_ROUTES = {
    "spec_gap": ("role_ba",),
    "tool_failure": ("role_infra",),
    "resource": ("role_infra",),
    "ambiguity": ("role_pm",),
    "verification_fail": ("role_pm",),
    "auth": (),
    "dependency": (),
}
SUPERVISOR_ROLE = "role_supervisor"


# (priority, sequence, task id)
Entry = tuple[int, int, str]
# (when, kind, key)
Timer = tuple[int, str, str]
T = TypeVar("T", Entry, Timer)


class Done(msgspec.Struct, frozen=True, gc=False):
    """A recorded request: the hash of its body and its place, to answer a caller that repeats it."""

    body: str
    sequence: int
    timestamp: int


class Heap(list[T]):
    """A heap whose stale entries are dropped when they reach the top, or all at once when more than half may be stale.
    The same entry may be in it twice."""

    limit = SMALL_HEAP
    # The requirements of all tasks in the heap, if it is a heap of tasks.
    requirement: Requirement

    def keep(self, entries: list[T]) -> None:
        """Keep only these entries, each once."""
        self[:] = dict.fromkeys(entries)
        heapify(self)
        self.limit = max(SMALL_HEAP, 2 * len(self))


def _heap_of(sets: dict[Requirement, Heap[Entry]], task: Task) -> Heap[Entry]:
    """Return the heap of the tasks with the same requirements; they share one tuple in memory."""
    requirement = (task.roles, task.capabilities)
    heap = sets.get(requirement)
    if heap is None:
        heap = sets[requirement] = Heap()
        heap.requirement = requirement
    task.roles, task.capabilities = heap.requirement
    return heap


def in_order(heaps: Sequence[Sequence[T]]) -> Iterator[T]:
    """Yield the entries of several heaps, least first, each in logarithmic time. The heaps do not change."""
    frontier = [(heap[0], number, 0) for number, heap in enumerate(heaps) if heap]
    heapify(frontier)
    while frontier:
        entry, number, place = heappop(frontier)
        yield entry
        heap = heaps[number]
        for below in range(2 * place + 1, min(2 * place + 3, len(heap))):
            heappush(frontier, (heap[below], number, below))


class World:
    """Everything live in one workspace."""

    def __init__(self) -> None:
        self.sequence = 0
        self.timestamp = 0
        self.workspace = Workspace()
        self.agents: dict[str, Agent] = {}
        self.slugs: dict[str, str] = {}
        self.roles: dict[str, Role] = {}
        self.removed_roles: dict[str, Role] = {}
        self.queues: dict[str, Queue] = {}
        self.projects: dict[str, Project] = {}
        self.phases: dict[str, Phase] = {}
        self.tasks: dict[str, Task] = {}
        # claim -> its task: for live claims, and for claims whose lease expired.
        self.claims: dict[str, str] = {}
        self.expired: dict[str, str] = {}
        self.messages: dict[str, Message] = {}
        self.keys: dict[str, Key] = {}
        # The other accounts that may write on the topic, by account.
        self.parties: dict[str, Party] = {}
        self.runs: dict[str, Run] = {}
        self.gates: dict[str, Gate] = {}
        self.definitions: dict[str, Definition] = {}
        # task -> agent -> the outcome of its last claim attempt that did not win.
        self.misses: dict[str, dict[str, Miss]] = {}
        # task -> the tasks that wait for it.
        self.dependents: dict[str, list[str]] = {}
        # Queue -> requirements -> the available tasks by (priority, sequence); stale entries are skipped.
        self.heaps: dict[str, dict[Requirement, Heap[Entry]]] = {}
        self.pending: OrderedDict[str, Pending] = OrderedDict()
        self.agenda: OrderedDict[tuple[str, str], str] = OrderedDict()
        self.timers: Heap[Timer] = Heap()
        # Ended tasks in the order in which they will leave the world: (when, task, attempt).
        self.tombstones: deque[tuple[int, str, int]] = deque()
        # The requests of the idempotency window by their keys, and whether older keys were dropped.
        self.done: OrderedDict[str, Done] = OrderedDict()
        self.keys_dropped = False

    def follows(self, kind: str, subject: str, cause: str) -> None:
        """Put something that follows from the wire `cause` on the agenda, until the wire that records it is folded."""
        self.agenda[kind, subject] = cause

    def opens(self, task: Task, cause: str) -> None:
        """Make a task without open dependencies available, now or at the end of its pause."""
        if task.opens_at > self.timestamp:
            self.at(task.opens_at, "opens", task.task_id)
        else:
            self.follows("available", task.task_id, cause)

    def at(self, when: int, kind: str, key: str) -> None:
        """Add a timer. When it is due, the reader checks that it still applies."""
        heappush(self.timers, (when, kind, key))
        if len(self.timers) > self.timers.limit:
            self.timers.keep([timer for timer in self.timers if self._is_timer(timer)])

    def _is_timer(self, timer: Timer) -> bool:
        """True while the timer may still have an effect."""
        when, kind, key = timer
        if kind == "lost":
            agent = self.agents.get(key)
            return agent is not None and agent.active and not agent.lost
        if kind == "gate":
            gate = self.gates.get(key)
            return gate is not None and gate.deadline_at == when and not gate.reminded
        task = self.tasks.get(key)
        if task is None or task.ended_at:
            return False
        if kind == "opens":
            return task.state == "created" and when == task.opens_at
        return when == (task.deadline_at if kind == "deadline" else task.lease_expires_at)

    def is_due(self, timer: Timer, now: int) -> bool:
        """True when a timer whose time has come has an effect now."""
        _, kind, key = timer
        if kind == "lost":
            agent = self.agents.get(key)
            if agent is None or agent.lost or not agent.active:
                return False
            return agent.last_act_at + LOST_AFTER_NANOSECONDS <= now
        if kind == "gate":
            gate = self.gates.get(key)
            return gate is not None and gate.deadline_at <= now and not gate.reminded
        task = self.tasks.get(key)
        if task is None:
            return False
        if kind == "opens":
            return self._has_turn(task) and 0 < task.opens_at <= now
        if kind == "deadline":
            return not task.ended_at and 0 < task.deadline_at <= now
        return task.claim_id != "" and task.lease_expires_at <= now

    def _has_turn(self, task: Task) -> bool:
        """True when the task waits only for its time: a step of a plan must have its room already."""
        if task.state != "created" or task.waits_for:
            return False
        run = self.runs.get(task.workflow_id) if task.workflow_id else None
        return not task.workflow_id or (run is not None and run.steps[run.places[task.plan_task]].state == "opening")

    def drop_timers(self, now: int) -> None:
        """Drop due timers that have no effect; the timer of an agent that acted since is set again."""
        timers = self.timers
        while timers and timers[0][0] <= now and not self.is_due(timers[0], now):
            _, kind, key = heappop(timers)
            agent = self.agents.get(key) if kind == "lost" else None
            if agent is not None and agent.active and not agent.lost:
                heappush(timers, (agent.last_act_at + LOST_AFTER_NANOSECONDS, kind, key))

    def offer(self, task: Task, changes: Changes) -> None:
        """Offer a task to claims, and notify the agents that wait for one."""
        self.put_back(task)
        changes.offers.append(Offer(task.queue_id, (task.roles, task.capabilities)))

    def put_back(self, task: Task) -> None:
        """Add an available task to the heap that claim-next reads, unless it is reserved or its run is paused."""
        if not self.may_offer(task):
            return
        heap = _heap_of(self.heaps.setdefault(task.queue_id, {}), task)
        heappush(heap, (task.priority, task.sequence, task.task_id))
        if len(heap) > heap.limit:
            heap.keep([entry for entry in heap if self.is_offer(entry)])

    def load_offers(self, queue_id: str, tasks: Sequence[Task]) -> None:
        """Add a page of a queue's available tasks while the world is loaded: no entry of a heap can be stale yet.

        Runs are loaded later; `trim_offers` then withdraws the tasks of paused ones.
        """
        sets = self.heaps.setdefault(queue_id, {})
        for task in tasks:
            if not task.reserved:
                heap = _heap_of(sets, task)
                heappush(heap, (task.priority, task.sequence, task.task_id))
                heap.limit = max(heap.limit, 2 * len(heap))

    def withdraw(self, task: Task) -> None:
        """Remove a task from the offers, so that the top entry of its heap is valid again."""
        sets = self.heaps.get(task.queue_id)
        heap = sets.get((task.roles, task.capabilities)) if sets else None
        if sets and heap and heap[0][2] == task.task_id:
            self._trim(sets, heap)

    def trim_offers(self) -> None:
        """Make the top entry of every heap valid."""
        for sets in self.heaps.values():
            for heap in [*sets.values()]:
                self._trim(sets, heap)

    def _trim(self, sets: dict[Requirement, Heap[Entry]], heap: Heap[Entry]) -> None:
        while heap and not self.is_offer(heap[0]):
            heappop(heap)
        if not heap:
            del sets[heap.requirement]

    def is_offered(self, offer: Offer) -> bool:
        """True while claim-next would find a task at this place."""
        return offer.requirement in self.heaps.get(offer.queue_id, ())

    def is_offer(self, entry: Entry) -> bool:
        """True while the entry belongs to a task that may be claimed."""
        task = self.tasks.get(entry[2])
        return task is not None and task.sequence == entry[1] and self.may_offer(task)

    def add_tombstone(self, task: Task) -> None:
        """Keep an ended task for a while to answer late questions; after that it lives in rows only."""
        self.tombstones.append((task.ended_at + TOMBSTONE_NANOSECONDS, task.task_id, task.attempt))

    def drop_ended_tasks(self, now: int, changes: Changes) -> None:
        """Drop tasks that ended long ago. Ledger time decides, so every fold drops them at the same place.

        While the agenda is not empty nothing is dropped, because entries may refer to any task.
        """
        if self.agenda:
            return
        while self.tombstones and self.tombstones[0][0] <= now:
            _, task_id, attempt = self.tombstones.popleft()
            task = self.tasks.get(task_id)
            # A task whose gate is open has not ended yet.
            if task is not None and task.ended_at and task.attempt == attempt and not task.gate_id:
                del self.tasks[task_id]
                self.misses.pop(task_id, None)
                # Its row is still unwritten: pass the task along, because the world drops it.
                if ("task", task_id) in changes.rows:
                    changes.touch("task", task_id, task)

    def close_gate(self, gate: Gate, state: str, by: str, now: int, changes: Changes) -> None:
        """Close a gate: it lives in rows only from now on, and its task ends like any other."""
        gate.state, gate.closed_by, gate.closed_at = state, by, now
        del self.gates[gate.gate_id]
        changes.touch("gate", gate.gate_id, gate)
        task = self.tasks[gate.task_id]
        task.gate_id = ""
        changes.touch("task", task.task_id)
        if task.ended_at + TOMBSTONE_NANOSECONDS <= now:
            # The tombstone of the task expired while the gate was open.
            self.tombstones.appendleft((now, task.task_id, task.attempt))

    def may_offer(self, task: Task) -> bool:
        """True when the task is available and not reserved, and its run is not paused."""
        return task.state == "available" and not task.reserved and self.is_running(task)

    def run_beside(self, task: Task) -> Run | None:
        """The live run that a simple task joined by its context; None when there is none."""
        if task.workflow_id or self.workspace.rules < 2 or not task.context_id.startswith("workflow:"):
            return None
        return self.runs.get(task.context_id[9:])

    def is_running(self, task: Task) -> bool:
        """False while the task's run is paused."""
        run = self.runs.get(task.workflow_id) if task.workflow_id else None
        return run is None or run.workflow.state != "paused"

    def release_dependents(self, task: Task, cause: str, changes: Changes) -> None:
        """The task is done, including its gate: dependents that waited only for it may continue."""
        for waiting_id in self.dependents.pop(task.task_id, ()):
            waiting = self.tasks.get(waiting_id)
            if waiting is None or waiting.ended_at:
                continue
            changes.touch("task", waiting_id)
            if task.task_id in waiting.waits_for:
                waiting.waits_for = tuple(key for key in waiting.waits_for if key != task.task_id)
                if not waiting.waits_for and waiting.state == "created":
                    self.opens(waiting, cause)
            if task.task_id in waiting.blocked_by:
                waiting.blocked_by = tuple(key for key in waiting.blocked_by if key != task.task_id)
                if not waiting.blocked_by and waiting.state == "blocked" and waiting.blocker_type == "dependency":
                    self.follows("unblocked", waiting_id, cause)

    def fail_dependents(self, task: Task, cause: str) -> None:
        """The task will never be done: dependents that have not started fail with it."""
        kept = []
        for waiting_id in self.dependents.pop(task.task_id, ()):
            waiting = self.tasks.get(waiting_id)
            if waiting is None or waiting.ended_at:
                continue
            if waiting.state == "created" and task.task_id in waiting.waits_for:
                self.follows("dependency_failed", waiting_id, cause)
            else:
                # Blocked by this task: another attempt at it may still end the block.
                kept.append(waiting_id)
        if kept:
            self.dependents[task.task_id] = kept

    def remember(self, idem: str, body: str, sequence: int, timestamp: int) -> None:
        """Remember a recorded request, so that a repeat within a day is answered from the ledger."""
        self.done[idem] = Done(body, sequence, timestamp)
        oldest = timestamp - IDEMPOTENCY_NANOSECONDS
        while len(self.done) > IDEMPOTENCY_LIMIT or next(iter(self.done.values())).timestamp < oldest:
            self.done.popitem(last=False)
            self.keys_dropped = True

    def next_seq(self, stream_id: str) -> int:
        """The number of the next wire of a stream."""
        stream = parse_stream(stream_id)
        kind, subject = stream.kind, stream.subject
        if kind == "task":
            task = self.tasks.get(subject)
            return task.stream_seq + 1 if task is not None and task.attempt == stream.attempt else 1
        if kind == "workspace":
            return self.workspace.stream_seq + 1
        if kind == "workflow":
            run = self.runs.get(subject)
            return run.workflow.stream_seq + 1 if run is not None else 1
        entity: Agent | Role | Queue | Project | Phase | None
        if kind == "agent":
            entity = self.agents.get(subject)
        elif kind == "role":
            entity = self.roles.get(subject) or self.removed_roles.get(subject)
        elif kind == "project":
            entity = self.projects.get(subject)
        elif kind == "phase":
            entity = self.phases.get(subject)
        else:
            entity = self.queues.get(subject)
        return entity.stream_seq + 1 if entity is not None else 1
