"""Workflows without I/O: validation of a plan of 10,000 tasks, and the reducer alone. `graphs` uses HTTP."""

from __future__ import annotations

import time
from typing import Any

from bench import row
from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.commands.decide import decide
from redkey.commands.past import NoPast
from redkey.commands.registry import CreateQueue, CreateWorkspace, GrantRole, RegisterAgent
from redkey.ledger import content
from redkey.plans.model import read_plan
from redkey.plans.validate import validate
from redkey.readmodel.structure import structure_of
from redkey.reducers.changes import Changes
from redkey.reducers.fold import fold
from redkey.reducers.world import World
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.services.unit_of_work import TopicWork
from redkey.stores.clock import SystemClock
from redkey.stores.ids import SystemIds
from redkey.stores.memory import MemoryStore
from redkey.wire.envelope import AnyWire, wire_of

QUEUE = "queue_bench"


def plan(levels: int, width: int) -> dict[str, Any]:
    """Levels of tasks, where each task depends on the whole level before it."""
    tasks = [
        {
            "id": f"t{level}-{place}",
            "title": f"Write part {place} of level {level}",
            "role": "writer",
            "dependsOn": [f"t{level - 1}-{above}" for above in range(width)] if level else [],
            "completionCriteria": ["The part has 3 sources"],
        }
        for level in range(levels)
        for place in range(width)
    ]
    return {
        "version": "1.0",
        "name": "bench",
        "roles": {"writer": {"description": "Writes."}},
        "tasks": tasks,
        "policies": {"maxParallelTasks": width, "retry": {"maxAttempts": 1, "onFailure": "fail"}},
    }


def main(quick: bool) -> None:
    """Measure everything; `quick` uses smaller plans."""
    _validate(1_000 if quick else 10_000)
    _reduce(3 if quick else 10, 100)


def _validate(count: int) -> None:
    chain = plan(count // 10, 10)
    best = min(_timed(lambda: validate(chain)) for _ in range(3))
    edges = sum(len(task["dependsOn"]) for task in chain["tasks"])
    row(
        f"check {count:,} tasks, {edges:,} dependencies",
        best,
        unit="s",
        aim=None if count < 10_000 else 0.5,
        least=True,
    )


def _timed(work: Any) -> float:
    """Processor seconds, so that other processes do not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _reduce(levels: int, width: int) -> None:
    """The records of a whole run, computed once and folded repeatedly into new worlds."""
    store = MemoryStore(SystemClock())
    topic = _run(store, levels, width)
    records = [record for page in _pages(store, topic) for record in page]
    wires = [wire_of(record.wire) for record in records]
    structures = [structure_of(store, topic, wire.payload) for wire in wires]
    best = min(_timed(lambda: _fold(records, wires, structures)) for _ in range(3))
    row(f"events of a run of {levels * width:,} tasks, folded", len(wires) / best, aim=50_000)


def _pages(store: MemoryStore, topic: str) -> Any:
    after = 0
    while page := store.read(topic, after):
        yield page
        after = page[-1].sequence


def _fold(records: list[Any], wires: list[AnyWire], structures: list[Any]) -> None:
    world = World()
    for record, wire, structure in zip(records, wires, structures, strict=True):
        fold(world, Changes(), wire, record.sequence, record.timestamp, record.payer, structure)
    assert not world.runs


def _run(store: MemoryStore, levels: int, width: int) -> str:
    """A whole run in memory, with all claims by one agent."""
    ids, world, value = SystemIds(), World(), plan(levels, width)
    caller = Actor("wk_" + ids.ulid(), "key_" + ids.ulid(), frozenset({"admin"}))
    topic = store.create_topic()

    def do(command: Any, contents: Any = ()) -> list[Any]:
        with store.write(topic) as unit:
            work = TopicWork(unit, topic, world, ids)
            records = work.note(decide(world, command, caller, work.now, ids, NoPast()).drafts)
            work.finish()
            unit.put_content(topic, contents)
        return records

    do(CreateWorkspace(caller.workspace_id))
    do(CreateQueue(QUEUE, {}))
    prepared = prepare(value, ids.nonce)
    roles, documents = missing_roles(read_plan(value), (), ids.nonce)
    do(start_command(prepared, "wf_" + ids.ulid(), QUEUE, roles), (*prepared.contents, *documents))
    agent = "agt_" + ids.ulid()
    card = content.document({"name": "bench"}, ids.nonce())
    do(RegisterAgent(agent, "bench", content.ref(card)), (card,))
    do(GrantRole("role_writer", agent))
    while world.runs:
        won = [one for one in do(ClaimNext(QUEUE, agent)) if one.wire["type"] == "task.claimed"]
        do(CompleteClaim(won[0].wire["payload"]["claim_id"]))
    return topic
