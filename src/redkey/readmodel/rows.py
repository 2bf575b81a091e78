"""Rows: the entities of a world as the store keeps them, and loading a world from them.

A unit writes the rows of everything that its fold changed, so rows always match the ledger. Tasks are listed by queue
and state, so reading a list costs only what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from sys import intern
from typing import Any, TypeVar, get_args

import msgspec

from redkey.ledger.ports import Reader, Row
from redkey.plans.structure import read_structure
from redkey.readmodel.moments import since
from redkey.readmodel.request_keys import load_window
from redkey.readmodel.structure import pinned
from redkey.reducers.changes import Changes
from redkey.reducers.entities import (
    Agent,
    Definition,
    Gate,
    Key,
    Message,
    Miss,
    Party,
    Queue,
    Role,
    Step,
    Task,
    Version,
    Webhook,
    Workflow,
    Workspace,
)
from redkey.reducers.run import Run
from redkey.reducers.workflow import ACTIVE
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, TOMBSTONE_NANOSECONDS, World

# Rows of this kind do not come from the ledger: drafts of definitions (`services.definitions`).
DRAFT = "draft"
# Nor do these: stored replies for repeated requests (`services.answers`).
ANSWER = "answer"
# Nor do these: tasks in the order of their A2A status (`readmodel.a2a_list`), read from the ledger when asked for.
A2A_TASK, A2A_CONTEXT = "a2a", "a2a_context"
# Nor is this: how far each webhook has got what it wants (`services.outbox`).
DELIVERY = "delivery"
BESIDE = frozenset({DRAFT, ANSWER, A2A_TASK, A2A_CONTEXT, DELIVERY})
LIVE_STATES = ("created", "available", "claimed", "working", "blocked")
ENDED_STATES = ("completed", "failed", "cancelled")
_encoder = msgspec.json.Encoder()
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
    "void": VoidRecord,
}
_DECODERS = {kind: msgspec.json.Decoder(entity) for kind, entity in KINDS.items()}


def _encode(entity: msgspec.Struct) -> bytes:
    """Encode an entity: equal entities have the same bytes, however they were built."""
    _share_defaults(entity)
    return _encoder.encode(entity)


def _share_defaults(entity: msgspec.Struct) -> None:
    """Replace values that equal their default with the default itself: the encoder omits defaults by identity."""
    for name, default in _defaults(type(entity)):
        value = getattr(entity, name)
        if value is default:
            continue
        if isinstance(value, msgspec.Struct):
            _share_defaults(value)
        if value == default:
            msgspec.structs.force_setattr(entity, name, default)


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the defaults that may have equal copies; Python itself shares empty values and small integers."""
    return tuple(
        (field.name, field.default)
        for field in msgspec.structs.fields(kind)
        if (type(field.default) is str and field.default)
        or (type(field.default) is int and not -5 <= field.default <= 256)
        or any(isinstance(one, type) and issubclass(one, msgspec.Struct) for one in (field.type, *get_args(field.type)))
    )


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
        return Row(kind, key, _encode(task), task_list(task.queue_id, task.state), position)
    if kind == "agent":
        return Row(kind, key, _encode(world.agents[key]))
    if kind == "miss":
        return Row(kind, key, _encode(gone))
    if kind == "message":
        message = gone or world.messages[key]
        position = place(message.priority, message.sequence)
        return Row(kind, key, _encode(message), message_list(message.to, read=message.read_at > 0), position)
    if kind == "workspace":
        return Row(kind, key, _encode(world.workspace))
    if kind == "workflow":
        return Row(kind, key, _encode(gone), "ended" if gone.ended_at else "live", gone.sequence)
    if kind == "step":
        return Row(kind, key, _encode(gone), key.rpartition("/")[0], gone.index)
    if kind == "definition":
        return Row(kind, key, _encode(gone), "published", gone.sequence)
    if kind == "version":
        return Row(kind, key, _encode(gone), gone.definition_id, gone.version)
    if kind == "party":
        return Row(kind, key, _encode(gone), "removed" if gone.removed_at else "present", gone.sequence)
    if kind == "webhook":
        return Row(kind, key, _encode(gone), "removed" if gone.removed else "present", gone.sequence)
    if kind == "gate":
        return Row(kind, key, _encode(gone), "open" if gone.state == "open" else "closed", gone.sequence)
    if kind == "role":
        return Row(kind, key, _encode(world.roles.get(key) or gone))
    entities: dict[str, dict[str, Any]] = {"queue": world.queues, "key": world.keys}
    return Row(kind, key, _encode(entities[kind][key]))


def void_row(sequence: int, reason: str) -> Row:
    """Build the row of a void record."""
    return Row("void", void_key(sequence), _encode(VoidRecord(reason)))


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
    after = (0, "")
    while True:
        rows = reader.rows(topic, kind, listed, after, _PAGE)
        yield from rows
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
            for task in pages(reader, topic, "task", task_list(queue_id, state)):
                _place(world, task)
    _load_tombstones(world, reader, topic)


def _place(world: World, task: Task) -> None:
    # Equal values of thousands of tasks are stored once.
    task.state, task.queue_id, task.context_id = intern(task.state), intern(task.queue_id), intern(task.context_id)
    world.tasks[task.task_id] = task
    if task.deadline_at:
        world.at(task.deadline_at, "deadline", task.task_id)
    if task.claim_id:
        world.claims[task.claim_id] = task.task_id
        if task.lease_expires_at:
            world.at(task.lease_expires_at, "lease", task.task_id)
    if task.expired_claim_id:
        world.expired[task.expired_claim_id] = task.task_id
    if task.state == "available":
        world.put_back(task)
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
        world.ends(task)
