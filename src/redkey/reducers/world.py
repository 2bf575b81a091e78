"""The world: what is live in one workspace, as the fold of its records says, and nothing else.

Entities are plain structs that reducers change in place; the rows to write and the waiters to wake are collected
beside the world (`changes`). What must follow from the records is on the `agenda`, what time will bring is among the
`timers`; `redkey.commands.due` turns both into wires. A task that has ended stays as a tombstone for a while and then
lives in rows only, so memory follows the live work and not the history.

Decisions only read. So that they need not search, the fold keeps the best entry of every heap of offers true: an entry
that is no longer true is dropped when it comes to the top. Timers are looked at by the clock and not by records, so
whoever runs a unit drops the ones that hold no more (`drop_timers`).
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
    Queue,
    Requirement,
    Role,
    Task,
    Workspace,
)
from redkey.reducers.run import Run
from redkey.wire.ids import parse_stream

SECOND = 1_000_000_000
# Long enough for those who were about to ask; a busy workspace ends thousands of tasks a second.
TOMBSTONE_NANOSECONDS = 60 * SECOND
LOST_AFTER_NANOSECONDS = 180 * SECOND
IDEMPOTENCY_NANOSECONDS = 24 * 3600 * SECOND
IDEMPOTENCY_LIMIT = 250_000
# Below this many entries a heap is not looked through for those that are no longer true.
SMALL_HEAP = 1024
# The largest set of rules this code folds under; a ledger of newer rules needs newer code.
RULES = 2


# Blocks go to those who can lift them, where the workspace has no other policy; a copy always goes to the supervisor
# role and to the humans.
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
    """A request that was recorded: the hash of its body and its place, for a caller that asks again."""

    body: str
    sequence: int
    timestamp: int


class Heap(list[T]):
    """What comes up in order. Entries that are no longer true are dropped when they come up, or all at once when
    they may be more than half. The same entry may be there twice."""

    limit = SMALL_HEAP
    # What all tasks of the heap ask for, where it is one of tasks.
    requirement: Requirement

    def keep(self, entries: list[T]) -> None:
        """Drop all but these, and keep each once."""
        self[:] = dict.fromkeys(entries)
        heapify(self)
        self.limit = max(SMALL_HEAP, 2 * len(self))


def in_order(heaps: Sequence[Sequence[T]]) -> Iterator[T]:
    """The entries of some heaps, the least first, each at the cost of a logarithm. The heaps do not change."""
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
        self.tasks: dict[str, Task] = {}
        # claim -> the task it holds, or held until its lease expired.
        self.claims: dict[str, str] = {}
        self.expired: dict[str, str] = {}
        self.messages: dict[str, Message] = {}
        self.keys: dict[str, Key] = {}
        # Who may write on the topic beside the log itself, by the account that pays.
        self.parties: dict[str, Party] = {}
        self.runs: dict[str, Run] = {}
        self.gates: dict[str, Gate] = {}
        self.definitions: dict[str, Definition] = {}
        # task -> agent -> the last outcome it was told.
        self.misses: dict[str, dict[str, Miss]] = {}
        # task -> those that wait for it.
        self.dependents: dict[str, list[str]] = {}
        # Per queue and requirement set, the available tasks by (priority, sequence); stale entries are skipped.
        self.heaps: dict[str, dict[Requirement, Heap[Entry]]] = {}
        self.pending: OrderedDict[str, Pending] = OrderedDict()
        self.agenda: OrderedDict[tuple[str, str], str] = OrderedDict()
        self.timers: Heap[Timer] = Heap()
        # Tasks that have ended, in the order they will leave the world: (when, task, attempt).
        self.tombstones: deque[tuple[int, str, int]] = deque()
        # The requests of the idempotency window by their keys, and whether older ones have left it.
        self.done: OrderedDict[str, Done] = OrderedDict()
        self.keys_dropped = False

    def follows(self, kind: str, subject: str, cause: str) -> None:
        """Something follows from the wire `cause`; it stays on the agenda until the wire that says so is folded."""
        self.agenda[kind, subject] = cause

    def at(self, when: int, kind: str, key: str) -> None:
        """Something may be due at a time; whoever looks then checks that it still is."""
        heappush(self.timers, (when, kind, key))
        if len(self.timers) > self.timers.limit:
            self.timers.keep([timer for timer in self.timers if self._is_timer(timer)])

    def _is_timer(self, timer: Timer) -> bool:
        """True while the timer tells of something that time will bring as things stand."""
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
        return when == (task.deadline_at if kind == "deadline" else task.lease_expires_at)

    def is_due(self, timer: Timer, now: int) -> bool:
        """True when a timer whose time has come brings something."""
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
        if kind == "deadline":
            return not task.ended_at and 0 < task.deadline_at <= now
        return task.claim_id != "" and task.lease_expires_at <= now

    def drop_timers(self, now: int) -> None:
        """Forget timers that bring nothing any more; an agent that acted since is looked at again later."""
        timers = self.timers
        while timers and timers[0][0] <= now and not self.is_due(timers[0], now):
            _, kind, key = heappop(timers)
            agent = self.agents.get(key) if kind == "lost" else None
            if agent is not None and agent.active and not agent.lost:
                heappush(timers, (agent.last_act_at + LOST_AFTER_NANOSECONDS, kind, key))

    def offer(self, task: Task, changes: Changes) -> None:
        """The task may be claimed: put it where claim-next looks, and let those who wait know."""
        self.put_back(task)
        changes.offers.append(Offer(task.queue_id, (task.roles, task.capabilities)))

    def put_back(self, task: Task) -> None:
        """Put an available task where claim-next looks; those of a paused run come back with the run."""
        if not self.may_offer(task):
            return
        sets = self.heaps.setdefault(task.queue_id, {})
        requirement = (task.roles, task.capabilities)
        heap = sets.get(requirement)
        if heap is None:
            heap = sets[requirement] = Heap()
            heap.requirement = requirement
        # A million tasks that ask for the same hold it once.
        task.roles, task.capabilities = heap.requirement
        heappush(heap, (task.priority, task.sequence, task.task_id))
        if len(heap) > heap.limit:
            heap.keep([entry for entry in heap if self.is_offer(entry)])

    def withdraw(self, task: Task) -> None:
        """The task may not be claimed any more: let the best offer beside it be a true one again."""
        sets = self.heaps.get(task.queue_id)
        heap = sets.get((task.roles, task.capabilities)) if sets else None
        if sets and heap and heap[0][2] == task.task_id:
            self._trim(sets, heap)

    def trim_offers(self) -> None:
        """Let the best offer of every set be a true one."""
        for sets in self.heaps.values():
            for heap in [*sets.values()]:
                self._trim(sets, heap)

    def _trim(self, sets: dict[Requirement, Heap[Entry]], heap: Heap[Entry]) -> None:
        while heap and not self.is_offer(heap[0]):
            heappop(heap)
        if not heap:
            del sets[heap.requirement]

    def is_offered(self, offer: Offer) -> bool:
        """True while claim-next finds a task at this place."""
        return offer.requirement in self.heaps.get(offer.queue_id, ())

    def is_offer(self, entry: Entry) -> bool:
        """True while the entry tells of a task that may be claimed."""
        task = self.tasks.get(entry[2])
        return task is not None and task.sequence == entry[1] and self.may_offer(task)

    def ends(self, task: Task) -> None:
        """The task has ended: it stays a while for those who still ask, then lives in rows only."""
        self.tombstones.append((task.ended_at + TOMBSTONE_NANOSECONDS, task.task_id, task.attempt))

    def bury(self, now: int, changes: Changes) -> None:
        """Let go of what ended long ago: ledger time decides, so every fold forgets at the same place.

        While something still follows, everything that it may speak of stays.
        """
        if self.agenda:
            return
        while self.tombstones and self.tombstones[0][0] <= now:
            _, task_id, attempt = self.tombstones.popleft()
            task = self.tasks.get(task_id)
            # A task whose gate is open is not over.
            if task is not None and task.ended_at and task.attempt == attempt and not task.gate_id:
                del self.tasks[task_id]
                self.misses.pop(task_id, None)
                # A row that is still to be written is written from here.
                if ("task", task_id) in changes.rows:
                    changes.touch("task", task_id, task)

    def close_gate(self, gate: Gate, state: str, by: str, now: int, changes: Changes) -> None:
        """A gate was decided, or is needed no more: it lives in rows only, and its task is over like any other."""
        gate.state, gate.closed_by, gate.closed_at = state, by, now
        del self.gates[gate.gate_id]
        changes.touch("gate", gate.gate_id, gate)
        task = self.tasks[gate.task_id]
        task.gate_id = ""
        changes.touch("task", task.task_id)
        if task.ended_at + TOMBSTONE_NANOSECONDS <= now:
            # Its time ran out while the gate was open.
            self.tombstones.appendleft((now, task.task_id, task.attempt))

    def may_offer(self, task: Task) -> bool:
        """True when nobody has the task or is about to, and its run is not paused."""
        return task.state == "available" and not task.reserved and self.is_running(task)

    def run_beside(self, task: Task) -> Run | None:
        """The live run that a simple task belongs to beside its plan, by its context; None when there is none."""
        if task.workflow_id or self.workspace.rules < 2 or not task.context_id.startswith("workflow:"):
            return None
        return self.runs.get(task.context_id[9:])

    def is_running(self, task: Task) -> bool:
        """False while the task's run is paused."""
        run = self.runs.get(task.workflow_id) if task.workflow_id else None
        return run is None or run.workflow.state != "paused"

    def release_dependents(self, task: Task, cause: str, changes: Changes) -> None:
        """The task is done, gate and all: what waited only for it may go on."""
        for waiting_id in self.dependents.pop(task.task_id, ()):
            waiting = self.tasks.get(waiting_id)
            if waiting is None or waiting.ended_at:
                continue
            changes.touch("task", waiting_id)
            if task.task_id in waiting.waits_for:
                waiting.waits_for = tuple(key for key in waiting.waits_for if key != task.task_id)
                if not waiting.waits_for and waiting.state == "created":
                    self.follows("available", waiting_id, cause)
            if task.task_id in waiting.blocked_by:
                waiting.blocked_by = tuple(key for key in waiting.blocked_by if key != task.task_id)
                if not waiting.blocked_by and waiting.state == "blocked" and waiting.blocker_type == "dependency":
                    self.follows("unblocked", waiting_id, cause)

    def fail_dependents(self, task: Task, cause: str) -> None:
        """The task will never be done: what has not begun and waits for it fails with it."""
        kept = []
        for waiting_id in self.dependents.pop(task.task_id, ()):
            waiting = self.tasks.get(waiting_id)
            if waiting is None or waiting.ended_at:
                continue
            if waiting.state == "created" and task.task_id in waiting.waits_for:
                self.follows("dependency_failed", waiting_id, cause)
            else:
                # Blocked for it: another attempt at the task may still lift the block.
                kept.append(waiting_id)
        if kept:
            self.dependents[task.task_id] = kept

    def remember(self, idem: str, body: str, sequence: int, timestamp: int) -> None:
        """A caller's request is recorded: asked again within a day, it is answered from the ledger."""
        self.done[idem] = Done(body, sequence, timestamp)
        oldest = timestamp - IDEMPOTENCY_NANOSECONDS
        while len(self.done) > IDEMPOTENCY_LIMIT or next(iter(self.done.values())).timestamp < oldest:
            self.done.popitem(last=False)
            self.keys_dropped = True

    def next_seq(self, stream_id: str) -> int:
        """The number the next wire of a stream will have."""
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
        entity: Agent | Role | Queue | None
        if kind == "agent":
            entity = self.agents.get(subject)
        elif kind == "role":
            entity = self.roles.get(subject) or self.removed_roles.get(subject)
        else:
            entity = self.queues.get(subject)
        return entity.stream_seq + 1 if entity is not None else 1
