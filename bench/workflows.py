"""Workflows: a plan of 1,000 tasks over HTTP with 32 workers, the reducer alone, and the check of 10,000 tasks.

The server is the `redkey serve` process with its durable store; workers do nothing but claim and complete, each with
one request a task (`claimNext`), over connections that stay open.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from redkey.commands.caller import Caller
from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.commands.decide import decide
from redkey.commands.registry import CreateQueue, CreateWorkspace, GrantRole, RegisterAgent
from redkey.ledger import content
from redkey.plans.model import read_plan
from redkey.plans.validate import validate
from redkey.readmodel.structure import structure_of
from redkey.reducers.fold import fold
from redkey.reducers.world import World
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.services.unit_of_work import TopicWork
from redkey.stores.clock import SystemClock
from redkey.stores.ids import SystemIds
from redkey.stores.memory import MemoryStore
from redkey.wire.decode import decode

WORKERS = 32
QUEUE = "queue_bench"


def plan(levels: int, width: int) -> dict[str, Any]:
    """Levels of tasks, each task waiting for the whole level before."""
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
    """Measure everything; `quick` takes smaller plans."""
    _validate(1_000 if quick else 10_000)
    _reduce(3 if quick else 10, 100)
    asyncio.run(_serve(3 if quick else 10, 100))


def _validate(count: int) -> None:
    chain = plan(count // 10, 10)
    best = min(_timed(lambda: validate(chain)) for _ in range(3))
    edges = sum(len(task["dependsOn"]) for task in chain["tasks"])
    print(f"  validate {count:,} tasks with {edges:,} dependencies: {best:.3f} s of the processor")


def _timed(work: Any) -> float:
    """Seconds of the processor, so that others on the machine do not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _reduce(levels: int, width: int) -> None:
    """The records of a whole run, made once, folded again and again into fresh worlds."""
    store = MemoryStore(SystemClock())
    topic = _run(store, levels, width)
    records = [record for page in _pages(store, topic) for record in page]
    wires = [decode(record.wire) for record in records]
    structures = [structure_of(store, topic, wire) for wire in wires]
    best = min(_timed(lambda: _fold(records, wires, structures)) for _ in range(3))
    rate = len(wires) / best
    print(f"  fold a run of {levels * width:,} tasks: {len(wires):,} events, {rate:,.0f} a second of the processor")


def _pages(store: MemoryStore, topic: str) -> Any:
    after = 0
    while page := store.read(topic, after):
        yield page
        after = page[-1].sequence


def _fold(records: list[Any], wires: list[dict[str, Any]], structures: list[Any]) -> None:
    world = World()
    for record, wire, structure in zip(records, wires, structures, strict=True):
        fold(world, wire, record.sequence, record.timestamp, structure)
    assert not world.runs


def _run(store: MemoryStore, levels: int, width: int) -> str:
    """A whole run in memory, its claims taken by one agent."""
    ids, world, value = SystemIds(), World(), plan(levels, width)
    caller = Caller("wk_" + ids.ulid(), "key_" + ids.ulid(), frozenset({"admin"}))
    with store.write() as unit:
        topic = unit.create_topic()

    def do(command: Any, contents: Any = ()) -> list[Any]:
        with store.write() as unit:
            work = TopicWork(unit, topic, world, ids)
            records = work.note(decide(world, command, caller, work.now, ids).drafts)
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


async def _serve(levels: int, width: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ready = Path(directory) / "ready"
        command = [sys.executable, "-m", "redkey", "serve", "--data", f"{directory}/data", "--port", "0"]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("REDKEY_")}
        quiet = subprocess.DEVNULL
        server = subprocess.Popen([*command, "--ready-file", str(ready)], stdout=quiet, stderr=quiet, env=clean)
        try:
            while not ready.exists():
                await asyncio.sleep(0.02)
            key = json.loads((Path(directory) / "data/credentials.json").read_text())["apiKey"]
            url = json.loads(ready.read_text())["url"]
            await _measure(url.removeprefix("http://").partition(":")[::2], key, levels, width, server.pid)
        finally:
            server.terminate()
            server.wait()


def _processor(pid: int) -> float:
    """Seconds of the processor that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _measure(place: tuple[str, str], key: str, levels: int, width: int, pid: int) -> None:
    admin = await Connection.open(place, key)
    await admin.post("/queues", {"id": QUEUE, "name": "bench"})
    await admin.post("/roles", {"id": "writer", "name": "Writer"})
    workers = []
    for number in range(WORKERS):
        card = {"name": f"w{number}", "description": "x", "url": "https://x.example/a", "version": "1", "skills": []}
        made = await admin.post("/agents/register-card", {"agentCard": {**card, "capabilities": {}}, "issueKey": True})
        await admin.post(f"/roles/writer/agents/{made['agentId']}", {})
        workers.append((await Connection.open(place, made["apiKey"]), made["agentId"]))
    waiting = [asyncio.create_task(_work(connection, agent)) for connection, agent in workers]
    begun, before = time.perf_counter(), _processor(pid)
    started = await admin.post("/workflows", {"queueId": QUEUE, "plan": plan(levels, width)})
    opened = time.perf_counter() - begun
    while (await admin.get(f"/workflows/{started['workflowId']}"))["status"] == "running":
        await asyncio.sleep(0.02)
    took, worked = time.perf_counter() - begun, _processor(pid) - before
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    count = levels * width
    print(
        f"  {count:,} tasks on {levels} levels, {WORKERS} workers over HTTP: {took:.2f} s"
        f" ({count / took:,.0f} tasks/s, start {opened * 1000:.0f} ms), {worked:.2f} s of the processor for the server"
    )


async def _work(connection: Connection, agent: str) -> None:
    """Claim, complete with the next claim in the same reply, and wait when there is nothing."""
    while True:
        claimed = await connection.post(f"/queues/{QUEUE}/claim-next", {"agentId": agent, "wait": 30})
        while claimed is not None and claimed["status"] == "claimed":
            body = {"claimNext": {"queueId": QUEUE}}
            claimed = (await connection.post(f"/claims/{claimed['claimId']}/complete", body)).get("next")


class Connection:
    """One HTTP/1.1 connection that stays open; as little client as there can be, for it shares the machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer = reader, writer
        self._headers = f"host: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n"

    @classmethod
    async def open(cls, place: tuple[str, str], key: str) -> Connection:
        return cls(*await asyncio.open_connection(place[0], int(place[1])), key)

    async def post(self, path: str, body: Any) -> Any:
        return await self._call("POST", path, json.dumps(body).encode())

    async def get(self, path: str) -> Any:
        return await self._call("GET", path, b"")

    async def _call(self, method: str, path: str, body: bytes) -> Any:
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
        data = json.loads(await self._reader.readexactly(size))
        if not answer.startswith("http/1.1 2"):
            raise RuntimeError(f"{method} {path}: {data}")
        return data
