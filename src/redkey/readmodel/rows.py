"""Rows: the entities of a world as the store keeps them, and loading a world from them.

A unit writes the rows of everything that its fold changed, so rows always match the ledger. Tasks are listed by queue
and state, so reading a list costs only what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from sys import intern
from typing import Any, TypeVar

import msgspec

from redkey.ledger.ports import Reader, Row
from redkey.plans.structure import read_structure
from redkey.readmodel.entity_bytes import encode_entity
from redkey.readmodel.moments import since
from redkey.readmodel.request_keys import load_window
from redkey.readmodel.structure import pinned
from redkey.reducers.changes import Changes
from redkey.reducers.entities import (
    AWAITING_APPROVAL,
    Agent,
    Definition,
    Gate,
    Key,
    Message,
    Miss,
    Party,
    Phase,
    Project,
    Queue,
    Role,
    Step,
    StoredArtifact,
    Superseded,
    Task,
    Version,
    Webhook,
    Workflow,
    Workspace,
)
from redkey.reducers.run import Run
from redkey.reducers.steps import ACTIVE
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, TOMBSTONE_NANOSECONDS, World

# Rows of these kinds do not come from the ledger: drafts of definitions (`services.definitions`), stored replies for
# repeated requests (`services.answers`), how far each webhook has got what it wants (`services.outbox`), and the
# one-time code and the sessions of a person (`services.people`).
DRAFT, ANSWER, DELIVERY, LOGIN = "draft", "answer", "delivery", "login"
# Nor do these: tasks in the order of their A2A status (`readmodel.a2a_list`), read from the ledger when asked for.
A2A_TASK, A2A_CONTEXT = "a2a", "a2a_context"
# Nor do these: what became of the messages of a network (`services.ordered.messages`), transactions whose fees are not
# booked yet (`services.ordered.fees`), and bodies that other servers have (`services.ordered.bodies`).
NETWORK, SENT, WANTED = "network", "sent", "wanted"
BESIDE = frozenset({DRAFT, ANSWER, A2A_TASK, A2A_CONTEXT, DELIVERY, LOGIN, NETWORK, SENT, WANTED})
LIVE_STATES = ("created", "available", "claimed", "working", "blocked")
ENDED_STATES = (AWAITING_APPROVAL, "completed", "failed", "cancelled")
_PAGE = 1000

E = TypeVar("E")


class VoidRecord(msgspec.Struct, frozen=True):
    """A record without effect, and the reason; the key of its row is its sequence."""

    reason: str


KINDS: dict[str, type[Any]] = {
    "task": Task,
    "agent": Agent,
    "role": Role,
    "queue": Queue,
    "message": Message,
    "key": Key,
    "party": Party,
    "miss": Miss,
    "workspace": Workspace,
    "workflow": Workflow,
    "step": Step,
    "gate": Gate,
    "definition": Definition,
    "version": Version,
    "webhook": Webhook,
    "project": Project,
    "phase": Phase,
    "artifact": StoredArtifact,
    "superseded": Superseded,
    "void": VoidRecord,
}
_DECODERS = {kind: msgspec.json.Decoder(entity) for kind, entity in KINDS.items()}
_TASKS = msgspec.json.Decoder(list[Task])


def task_list(queue_id: str, state: str) -> str:
    """Return the name of the list of a queue's tasks in one state."""
    return f"{queue_id}/{state}"


def place(priority: int, sequence: int) -> int:
    """Return the place in a list that is sorted by priority, then by age."""
    return priority << 48 | sequence


def take_rows(world: World, changes: Changes) -> list[Row]:
    """Return the rows of everything that changed since the last call."""
    rows = [_row(world, kind, key, entity) for (kind, key), entity in changes.rows.items()]
    changes.rows.clear()
    return rows


def miss_key(task_id: str, agent_id: str) -> str:
    """Return the key of the row with an agent's last miss or rejection for a task."""
    return f"{task_id}/{agent_id}"


def message_list(to: str, *, read: bool) -> str:
    """Return the name of the list of read or unread messages to an agent (`agent:<id>`) or to the humans."""
    box = to if to.startswith("agent:") else "human"
    return f"{box}/{'read' if read else 'unread'}"


def _row(world: World, kind: str, key: str, gone: Any) -> Row:
    if kind == "task":
        task = gone or world.tasks[key]
        position = place(task.priority, task.sequence)
        # The first rules list it as completed while its gate is open; raising the rules writes these rows again.
        state = task.shown_state if world.workspace.rules > 1 else task.state
        return Row(kind, key, encode_entity(task), task_list(task.queue_id, state), position)
    if kind == "agent":
        return Row(kind, key, encode_entity(world.agents[key]))
    if kind == "miss":
        return Row(kind, key, encode_entity(gone))
    if kind == "message":
        message = gone or world.messages[key]
        position = place(message.priority, message.sequence)
        return Row(kind, key, encode_entity(message), message_list(message.to, read=message.read_at > 0), position)
    if kind == "workspace":
        return Row(kind, key, encode_entity(world.workspace))
    if kind == "workflow":
        return Row(kind, key, encode_entity(gone), "ended" if gone.ended_at else "live", gone.sequence)
    if kind == "step":
        return Row(kind, key, encode_entity(gone), key.rpartition("/")[0], gone.index)
    if kind == "definition":
        return Row(kind, key, encode_entity(gone), "published", gone.sequence)
    if kind == "version":
        return Row(kind, key, encode_entity(gone), gone.definition_id, gone.version)
    if kind == "party":
        return Row(kind, key, encode_entity(gone), "removed" if gone.removed_at else "present", gone.sequence)
    if kind == "webhook":
        return Row(kind, key, encode_entity(gone), "removed" if gone.removed else "present", gone.sequence)
    if kind == "gate":
        return Row(kind, key, encode_entity(gone), "open" if gone.state == "open" else "closed", gone.sequence)
    if kind == "project":
        return Row(kind, key, encode_entity(world.projects[key]), "projects", world.projects[key].sequence)
    if kind == "phase":
        return Row(
            kind, key, encode_entity(world.phases[key]), world.phases[key].project_id, world.phases[key].sequence
        )
    if kind in ("artifact", "superseded"):
        return Row(kind, key, encode_entity(gone))
    if kind == "role":
        return Row(kind, key, encode_entity(world.roles.get(key) or gone))
    if kind == "key":
        found = world.keys[key]
        return Row(kind, key, encode_entity(found), *(("person", found.created_at) if found.person else ()))
    return Row(kind, key, encode_entity(world.queues[key]))


def void_row(sequence: int, reason: str) -> Row:
    """Build the row of a void record."""
    return Row("void", void_key(sequence), encode_entity(VoidRecord(reason)))


def void_key(sequence: int) -> str:
    """Return the key of a void record's row: its sequence, so that rows are in the order of the ledger."""
    return f"{sequence:016d}"


def entity(row: Row) -> Any:
    """Decode the entity of a row."""
    return _DECODERS[row.kind].decode(row.body)


def pages(reader: Reader, topic: str, kind: str, listed: str | None = None) -> Iterator[Any]:
    """Yield every entity of a kind, or of one list, a page at a time."""
    return map(entity, pages_of(reader, topic, kind, listed))


def pages_of(reader: Reader, topic: str, kind: str, listed: str | None = None) -> Iterator[Row]:
    """Yield every row of a kind, or of one list, a page at a time."""
    return chain.from_iterable(_pages(reader, topic, kind, listed))


def _pages(reader: Reader, topic: str, kind: str, listed: str | None) -> Iterator[Sequence[Row]]:
    after = (0, "")
    while rows := reader.rows(topic, kind, listed, after, _PAGE):
        yield rows
        if len(rows) < _PAGE:
            return
        after = (rows[-1].position, rows[-1].key)


def load_world(reader: Reader, topic: str) -> World:
    """Load the world of a topic, as of its head, from its rows."""
    world = World()
    head = reader.head(topic)
    world.sequence, world.timestamp = head.sequence, head.timestamp
    row = reader.row(topic, "workspace", "")
    if row is None:
        return world
    world.workspace = entity(row)
    for agent in pages(reader, topic, "agent"):
        world.agents[agent.agent_id] = agent
        world.slugs[agent.slug] = agent.agent_id
        if agent.active and not agent.lost:
            world.at(agent.last_act_at + LOST_AFTER_NANOSECONDS, "lost", agent.agent_id)
    for role in pages(reader, topic, "role"):
        (world.removed_roles if role.removed_at else world.roles)[role.role_id] = role
    world.queues = {queue.queue_id: queue for queue in pages(reader, topic, "queue")}
    world.projects = {project.project_id: project for project in pages(reader, topic, "project")}
    world.phases = {phase.phase_id: phase for phase in pages(reader, topic, "phase")}
    world.keys = {key.key_id: key for key in pages(reader, topic, "key")}
    world.parties = {party.payer: party for party in pages(reader, topic, "party", "present")}
    for to in ("human", *(f"agent:{agent_id}" for agent_id in world.agents)):
        for message in pages(reader, topic, "message", message_list(to, read=False)):
            world.messages[message.message_id] = message
    world.definitions = {one.definition_id: one for one in pages(reader, topic, "definition")}
    _load_tasks(world, reader, topic)
    _load_runs(world, reader, topic)
    load_window(world, reader, topic)
    # Tasks come before their runs, which may be paused.
    world.trim_offers()
    return world


def _load_tasks(world: World, reader: Reader, topic: str) -> None:
    for queue_id in world.queues:
        for state in LIVE_STATES:
            for page in _pages(reader, topic, "task", task_list(queue_id, state)):
                # One array is decoded faster than a thousand objects.
                tasks = _TASKS.decode(b"[%b]" % b",".join([row.body for row in page]))
                for task in tasks:
                    # Values that thousands of tasks have in common are stored once.
                    task.state, task.queue_id, task.context_id = state, queue_id, intern(task.context_id)
                    world.tasks[task.task_id] = task
                    if task.claim_id or task.deadline_at or task.opens_at or task.waits_for or task.blocked_by:
                        _place_links(world, task)
                    if task.expired_claim_id:
                        world.expired[task.expired_claim_id] = task.task_id
                if state == "available":
                    world.load_offers(queue_id, tasks)
    _load_tombstones(world, reader, topic)


def _place_links(world: World, task: Task) -> None:
    """Add a task's times, claim and dependencies to a world that is being loaded."""
    if task.deadline_at:
        world.at(task.deadline_at, "deadline", task.task_id)
    if task.opens_at and task.state == "created":
        world.at(task.opens_at, "opens", task.task_id)
    if task.claim_id:
        world.claims[task.claim_id] = task.task_id
        if task.lease_expires_at:
            world.at(task.lease_expires_at, "lease", task.task_id)
    for dependency in (*task.waits_for, *task.blocked_by):
        world.dependents.setdefault(dependency, []).append(task.task_id)


def _load_runs(world: World, reader: Reader, topic: str) -> None:
    for gate in pages(reader, topic, "gate", "open"):
        world.gates[gate.gate_id] = gate
        if gate.deadline_at and not gate.reminded:
            world.at(gate.deadline_at, "gate", gate.gate_id)
        row = reader.row(topic, "task", gate.task_id)
        if row is not None:
            world.tasks.setdefault(gate.task_id, entity(row))
    for workflow in pages(reader, topic, "workflow", "live"):
        plan = read_structure(pinned(reader, topic, workflow.structure_sha256))
        run = Run(workflow, plan, pages(reader, topic, "step", workflow.workflow_id))
        open_tasks = (world.tasks.get(step.task_id) for step in run.steps if step.state == "open")
        run.active = sum(task is not None and task.state in ACTIVE for task in open_tasks)
        run.active += sum(step.state == "opening" for step in run.steps)
        world.runs[workflow.workflow_id] = run
    if any(run.workflow.extras for run in world.runs.values()):
        for task in world.tasks.values():
            if (beside := world.run_beside(task)) is not None and (not task.ended_at or task.gate is not None):
                beside.extras.add(task.task_id)


def _load_tombstones(world: World, reader: Reader, topic: str) -> None:
    """Load the tasks that ended recently and are still in the world, from the last records."""
    ended: list[Task] = []
    for record in since(reader, topic, world.timestamp - TOMBSTONE_NANOSECONDS, b'"terminal":true'):
        wire = msgspec.json.decode(record.wire)
        task_id = wire["stream"]["stream_id"].split(":")[1]
        row = reader.row(topic, "task", task_id)
        task = entity(row) if row is not None and task_id not in world.tasks else None
        if task is not None and task.ended_at:
            world.tasks[task_id] = task
            ended.append(task)
    for task in sorted(ended, key=lambda task: task.ended_at):
        world.add_tombstone(task)
