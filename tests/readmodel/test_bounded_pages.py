"""A page costs what it may cost: one that must look through much ends early, with the cursor that goes on."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.ledger.ports import Row
from redkey.ledger.record import Record
from redkey.readmodel.available import available
from redkey.readmodel.claim_history import claim_history
from redkey.readmodel.rows import place
from redkey.reducers.entities import Agent, Queue, Task
from redkey.reducers.world import World
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import VERSION

AGENT = "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"


class Shelf:
    """The rows and events that a test puts there, and how many of them were looked at."""

    def __init__(self, rows: list[Row] | None = None, records: list[Record] | None = None) -> None:
        self._rows, self._records = rows or [], records or []
        self.looked = 0

    def rows(self, topic: str, kind: str, listed: str, after: tuple[int, str], limit: int) -> list[Row]:
        page = [row for row in self._rows if (row.position, row.key) > after][:limit]
        self.looked += len(page)
        return page

    def events(self, topic: str, subject: str, after: int, limit: int, *, newest_first: bool) -> list[Record]:
        page = [one for one in reversed(self._records) if not after or one.sequence < after][:limit]
        self.looked += len(page)
        return page


def task(number: int, roles: tuple[str, ...]) -> Task:
    return Task(
        task_id=f"task_{number:026d}",
        attempt=1,
        state="available",
        queue_id="queue_q",
        priority=2,
        sequence=number,
        created_at=1,
        updated_at=1,
        content_sha256="",
        content_bytes=0,
        context_id="queue:queue_q",
        roles=roles,
    )


def shelf_of(tasks: list[Task]) -> tuple[World, Any]:
    world = World()
    world.queues["queue_q"] = Queue("queue_q", 1)
    world.agents[AGENT] = Agent(AGENT, "a", "", 1, 1)
    for one in tasks:
        world.tasks[one.task_id] = one
        world.put_back(one)
    encode = msgspec.json.encode
    return world, Shelf([Row("task", one.task_id, encode(one), "", place(2, one.sequence)) for one in tasks])


def test_tasks_of_others_end_a_page_early_and_the_cursor_goes_on_to_the_own_one() -> None:
    tasks = [task(number, ("role_other",)) for number in range(1, 6_001)] + [task(6_001, ())]
    world, shelf = shelf_of(tasks)
    found, after = available(shelf, "t", world, "queue_q", AGENT, (0, ""), 10)
    assert (found, shelf.looked) == ([], 5_000)
    assert after is not None
    found, after = available(shelf, "t", world, "queue_q", AGENT, after, 10)
    assert ([one.task_id for one in found], after) == ([tasks[-1].task_id], None)


def test_nothing_is_looked_through_when_the_agent_can_claim_nothing() -> None:
    world, shelf = shelf_of([task(number, ("role_other",)) for number in range(1, 100)])
    assert available(shelf, "t", world, "queue_q", AGENT, (0, ""), 10) == ([], None)
    assert shelf.looked == 0


def test_a_history_among_many_other_events_ends_early_with_its_cursor() -> None:
    def record(sequence: int, event: str, payload: dict[str, Any]) -> Record:
        wire = {
            "type": event,
            "wire_id": f"wire_{sequence:026d}",
            "sender": "system",
            "stream": {"context_id": "workspace:wk_1", "stream_seq": sequence, "stream_id": f"agent:{AGENT}"},
            "ts": "2026-11-16T12:00:00Z",
            "wire": VERSION,
            "payload": payload,
        }
        return Record("t", sequence, sequence, "1.0.2", b"", canonical(wire))

    rejected = {"task_id": "task_1", "claim_id": "clm_1", "reason": "missing_role"}
    records = [record(1, "task.claim_rejected", rejected)]
    records += [record(number, "agent.heartbeat", {}) for number in range(2, 6_002)]
    shelf: Any = Shelf(records=records)
    found, before = claim_history(shelf, "t", AGENT, 0, 10)
    assert (found, shelf.looked) == ([], 5_000)
    assert before is not None
    found, before = claim_history(shelf, "t", AGENT, before, 10)
    assert ([item.status for item in found], before) == (["rejected"], None)
