"""A run with its tasks and gates, now or as it was at any place of the ledger.

The present state is read from rows. A past state is a fold of the run's own records, up to that place, into a world
without anything else; so its cost depends on the run, not on the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.plans.structure import GatePolicy, read_structure
from redkey.readmodel.rows import entity, pages
from redkey.readmodel.structure import pinned, structure_of
from redkey.readmodel.task_at import task_at
from redkey.reducers.changes import Changes
from redkey.reducers.entities import Gate, Queue, Task, Workflow
from redkey.reducers.event import event
from redkey.reducers.fold import apply
from redkey.reducers.run import Run
from redkey.reducers.world import World
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.events import GateOpened, TaskCreated
from redkey.wire.ids import parse_stream

_PAGE = 500


class RunSnapshot(msgspec.Struct, frozen=True):
    """A run at one moment: its steps, the tasks they opened, by id, and their open gates, by task."""

    run: Run
    tasks: dict[str, Task]
    gates: dict[str, Gate]
    sequence: int
    # Simple tasks that were put beside those of its plan.
    extras: tuple[Task, ...] = ()


def run_now(reader: Reader, topic: str, workflow: Workflow) -> RunSnapshot:
    """Read the run from its rows."""
    sequence = reader.head(topic).sequence
    structure = read_structure(pinned(reader, topic, workflow.structure_sha256))
    run = Run(workflow, structure, pages(reader, topic, "step", workflow.workflow_id))
    tasks: dict[str, Task] = {}
    gates: dict[str, Gate] = {}
    for step in run.steps:
        row = reader.row(topic, "task", step.task_id) if step.task_id else None
        if row is None:
            continue
        task = tasks[step.task_id] = entity(row)
        gate = reader.row(topic, "gate", task.gate_id) if task.gate_id else None
        if gate is not None:
            gates[task.task_id] = entity(gate)
    return RunSnapshot(run, tasks, gates, sequence, _extras(reader, topic, workflow, None))


def _extras(reader: Reader, topic: str, workflow: Workflow, until: int | None) -> tuple[Task, ...]:
    """The simple tasks of a run, now or after the record `until`; the run counts them, so most runs need no search."""
    found: dict[str, Task] = {}
    if workflow.extras:
        for record in _records(reader, topic, workflow.workflow_id, until if until is not None else 1 << 62):
            wire = wire_of(record.wire)
            task_id = parse_stream(wire.stream.stream_id).subject
            if isinstance(wire.payload, TaskCreated) and wire.payload.plan_task is None and task_id not in found:
                row = reader.row(topic, "task", task_id)
                task: Task | None = entity(row) if row is not None else None
                if task is not None and until is not None:
                    task = task_at(reader, topic, task, until)
                if task is not None:
                    found[task_id] = task
    return tuple(found.values())


def run_at(reader: Reader, topic: str, workflow: Workflow, sequence: int) -> RunSnapshot | None:
    """Return the run after the record with this sequence; None if it had not started."""
    if workflow.sequence > sequence:
        return None
    world = World()
    world.queues[workflow.queue_id] = Queue(workflow.queue_id, 0)
    records = list(_records(reader, topic, workflow.workflow_id, sequence))
    wires = [wire_of(record.wire) for record in records]
    # The message that asked for a gate may belong to another stream; that the gate opened shows that it was sent.
    gated = {wire.payload.task_id for wire in wires if isinstance(wire.payload, GateOpened)}
    void = {int(row.key) for row in reader.rows(topic, "void", None, (0, ""), 100_000)}
    run: Run | None = None
    for record, wire in zip(records, wires, strict=True):
        if record.sequence in void:
            continue
        _fold(world, wire, record, structure_of(reader, topic, wire.payload))
        run = run or world.runs.get(workflow.workflow_id)
        if isinstance(wire.payload, TaskCreated):
            task = world.tasks.get(parse_stream(wire.stream.stream_id).subject)
            if task is not None and task.task_id in gated:
                task.gate = task.gate or GatePolicy()
    if run is None:
        return None
    gates = {gate.task_id: gate for gate in world.gates.values()}
    return RunSnapshot(run, world.tasks, gates, sequence, _extras(reader, topic, workflow, sequence))


def _records(reader: Reader, topic: str, workflow_id: str, sequence: int) -> Iterator[Record]:
    after = 0
    while records := reader.events(topic, workflow_id, after, _PAGE):
        for record in records:
            if record.sequence > sequence:
                return
            yield record
        after = records[-1].sequence


def _fold(world: World, wire: AnyWire, record: Record, structure: dict[str, Any] | None) -> None:
    e = event(wire, record.sequence, record.timestamp, Changes(), record.payer, structure)
    apply(world, e, wire.payload)
    world.sequence, world.timestamp = record.sequence, record.timestamp
