"""Copies: fill a data directory with very many similar tasks, faster than by requests.

One task is created, claimed and completed through the coordinator. Its wires, rows and counters are the template; the
copies differ in ids, times and places. They go through the store as usual, chained, indexed and durable, but nothing is
decided, folded or validated, which is what takes the time. A test runs fsck, which replays everything, on the result.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from bench.bulk import Bulk
from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.commands.draft import derived_id
from redkey.ledger import content
from redkey.ledger.ports import Entry, Row, Unit
from redkey.readmodel.counted import COUNTED_AT, counters_now
from redkey.readmodel.rows import place
from redkey.reducers.entities import Agent, Task, Workspace
from redkey.reducers.world import SECOND
from redkey.services.counting import count_up
from redkey.services.outcome import Outcome
from redkey.stores.ids import SystemIds
from redkey.stores.sqlite import SqliteStore
from redkey.wire.envelope import wire_of
from redkey.wire.ids import task_stream
from redkey.wire.subjects import subjects
from redkey.wire.times import write_time

# Tasks per unit.
_AT_ONCE = 2000


class Stage(NamedTuple):
    """What one task recorded until it reached a stage."""

    wires: list[dict[str, Any]]
    task: Task
    listed: str
    # What each such task adds to the counters.
    counts: Counter[str]


class Mould:
    """The template: the records of one task, which all copies resemble."""

    def __init__(self, topic: str, queue_id: str, agent_id: str, waiting: Stage, finished: Stage) -> None:
        self.topic, self.queue_id, self.agent_id = topic, queue_id, agent_id
        self.waiting, self.finished = waiting, finished

    @classmethod
    async def cast(cls, data: Path, queue_id: str, agent_id: str) -> Mould:
        """Create, claim and complete one task."""
        with Bulk(data) as bulk:
            before = counters_now(bulk.store, bulk.topic)
            command, documents = bulk.task(queue_id)
            made = await bulk.do([(command, documents)])
            waiting = _stage(bulk, command.task_id, made, before)
            before = counters_now(bulk.store, bulk.topic)
            won = await bulk.do([(ClaimNext(queue_id, agent_id), ())])
            claim_id = won[0].records[0].wire["payload"]["claim_id"]
            ended = await bulk.do([(CompleteClaim(claim_id), ())])
            return cls(bulk.topic, queue_id, agent_id, waiting, _stage(bulk, command.task_id, won + ended, before))


def _stage(bulk: Bulk, task_id: str, outcomes: list[Outcome], before: Counter[str]) -> Stage:
    row = bulk.store.row(bulk.topic, "task", task_id)
    assert row is not None
    wires = [one.wire for outcome in outcomes for one in outcome.records]
    counts = counters_now(bulk.store, bulk.topic) - before
    return Stage(wires, msgspec.json.decode(row.body, type=Task), row.listed, counts)


class _Clock:
    """A clock that can be set forward, so that tests need not wait for a minute to pass."""

    ahead = 0

    def wall(self) -> int:
        return time.time_ns() + self.ahead

    def monotonic(self) -> int:
        return time.monotonic_ns() + self.ahead


class Copies:
    """Creates copies in one data directory; servers may have it open at the same time."""

    def __init__(self, data: Path, mould: Mould) -> None:
        self._clock = _Clock()
        self.store, self._ids, self._mould = SqliteStore(data, self._clock, create=False), SystemIds(), mould

    @property
    def head(self) -> int:
        """The number of events."""
        return self.store.head(self._mould.topic).sequence

    def skip(self, nanoseconds: int) -> None:
        """Let time pass on the ledger."""
        self._clock.ahead += nanoseconds

    def close(self) -> None:
        self.store.close()

    def fill(self, count: int) -> None:
        """Add this many available tasks."""
        for first in range(0, count, _AT_ONCE):
            with self.store.write(self._mould.topic) as unit:
                batch = _Batch(unit, self._mould.topic, self._mould.waiting)
                for _ in range(min(_AT_ONCE, count - first)):
                    self._create(batch)
                batch.finish()

    def finish(self, count: int) -> None:
        """Claim and complete this many of the available tasks, oldest first."""
        mould = self._mould
        for first in range(0, count, _AT_ONCE):
            with self.store.write(self._mould.topic) as unit:
                batch, limit = _Batch(unit, mould.topic, mould.finished), min(_AT_ONCE, count - first)
                agent = batch.entity("agent", mould.agent_id, Agent)
                for row in unit.rows(mould.topic, "task", mould.waiting.listed, limit=limit):
                    agent.stream_seq += 1
                    self._complete(batch, msgspec.json.decode(row.body, type=Task), agent.stream_seq)
                batch.put("agent", mould.agent_id, agent)
                batch.finish()

    def _create(self, batch: _Batch) -> None:
        document = content.document({"title": "A task"}, self._ids.nonce())
        [created, available], task = self._mould.waiting.wires, self._mould.waiting.task
        task.task_id, task.content_sha256 = "task_" + self._ids.ulid(), document.sha256
        task.sequence, task.created_at = batch.sequence + 1, batch.now
        created["payload"]["content_ref"]["sha256"] = document.sha256
        where, cause = task_stream(task.task_id, 1), "wire_" + self._ids.ulid()
        batch.unit.put_content(self._mould.topic, [document])
        batch.append(created, cause, where)
        available["stream"]["causation_id"] = cause
        task.updated_at = batch.append(available, derived_id(cause, "task.available", where), where)
        batch.put_task(task)

    def _complete(self, batch: _Batch, waiting: Task, stream_seq: int) -> None:
        [attempted, claimed, complete], task = self._mould.finished.wires, self._mould.finished.task
        task.task_id, task.content_sha256 = waiting.task_id, waiting.content_sha256
        task.sequence, task.created_at = waiting.sequence, waiting.created_at
        where, cause, claim_id = task_stream(task.task_id, 1), "wire_" + self._ids.ulid(), "clm_" + self._ids.ulid()
        for wire in (attempted, claimed, complete):
            wire["payload"]["claim_id"] = claim_id
        attempted["payload"]["task_id"], attempted["stream"]["stream_seq"] = task.task_id, stream_seq
        at = batch.append(attempted, cause, attempted["stream"]["stream_id"])
        claimed["stream"]["causation_id"] = cause
        claimed["payload"]["lease_expires_at"] = write_time(at + attempted["payload"]["lease_seconds"] * SECOND)
        task.claimed_at = batch.append(claimed, derived_id(cause, "task.claimed", claim_id), where)
        task.updated_at = task.ended_at = batch.append(complete, "wire_" + self._ids.ulid(), where)
        task.winner_claim_id = claim_id
        batch.put_task(task)


class _Batch:
    """The copies of one unit."""

    def __init__(self, unit: Unit, topic: str, stage: Stage) -> None:
        self.unit, self._topic, self._stage = unit, topic, stage
        while not count_up(unit, topic, []):
            pass
        self._expected = self.sequence = unit.head(topic).sequence
        self.now = unit.next_timestamp(topic)
        self._entries: list[Entry] = []
        self._rows: list[Row] = []
        # Bytes of wires by their types.
        self._sizes: Counter[str] = Counter()

    def append(self, wire: dict[str, Any], wire_id: str, stream_id: str) -> int:
        """Add a wire; return its timestamp."""
        at = self.now
        wire["wire_id"], wire["ts"], wire["stream"]["stream_id"] = wire_id, write_time(at), stream_id
        message = orjson.dumps(wire, option=orjson.OPT_SORT_KEYS)
        self._entries.append(Entry(message, wire_id, subjects(wire_of(message))))
        self._sizes[wire["type"]] += len(message)
        self.sequence, self.now = self.sequence + 1, at + 1
        return at

    def entity(self, kind: str, key: str, of: type[Any]) -> Any:
        row = self.unit.row(self._topic, kind, key)
        assert row is not None
        return msgspec.json.decode(row.body, type=of)

    def put(self, kind: str, key: str, entity: Any) -> None:
        self._rows.append(Row(kind, key, msgspec.json.encode(entity)))

    def put_task(self, task: Task) -> None:
        position = place(task.priority, task.sequence)
        self._rows.append(Row("task", task.task_id, msgspec.json.encode(task), self._stage.listed, position))

    def finish(self) -> None:
        """Hand everything to the unit."""
        tasks = len(self._entries) // len(self._stage.wires)
        counts = {name: self._count(name, each * tasks) for name, each in self._stage.counts.items()}
        workspace = self.entity("workspace", "", Workspace)
        workspace.credits_used += sum(
            amount for name, amount in counts.items() if name.startswith("type/") and name.endswith("/credits")
        )
        self.put("workspace", "", workspace)
        self.unit.append(self._topic, self._entries, self._expected)
        self.unit.put_rows(self._topic, self._rows)
        self.unit.count(self._topic, [*counts.items(), (COUNTED_AT, len(self._entries))])

    def _count(self, name: str, like_the_mould: int) -> int:
        """A counter of the batch: wires differ in size by the digits of their numbers."""
        kind, _, key, measure = name.split("/")
        if measure != "bytes":
            return like_the_mould
        return self._sizes[key] if kind == "type" else self._sizes.total()
