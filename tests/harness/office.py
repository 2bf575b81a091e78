"""An office: a coordinator on any store, with a workspace, a queue and agents, for tests of the write path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim
from redkey.commands.registry import CreateQueue, CreateRole, CreateWorkspace, GrantRole, RegisterAgent
from redkey.commands.tasks import CreateTask
from redkey.ledger.ports import SequencedStore
from redkey.services.coordinator import Coordinator
from redkey.services.outcome import Outcome
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import ADMIN_KEY, OUTCOMES, QUEUE, CountedIds, HandClock, ref_of


class Office:
    """One workspace behind a coordinator."""

    def __init__(
        self, store: SequencedStore, ids: Any = None, *, on_fatal: Callable[[BaseException], None] | None = None
    ) -> None:
        self.store, self.ids = store, ids or CountedIds()
        self.fatal: list[BaseException] = []
        self.coordinator = Coordinator(store, self.ids, on_fatal=on_fatal or self.fatal.append)
        self.topic, self.admin = "", Actor("", "", frozenset())

    async def begin(self, workspace_id: str = "") -> Office:
        """Create a workspace with a queue."""
        self.topic = self.store.create_topic()
        workspace_id = workspace_id or "wk_" + self.ids.ulid()
        self.admin = Actor(workspace_id, ADMIN_KEY, frozenset({"admin"}))
        await self.do(CreateWorkspace(workspace_id))
        await self.do(CreateQueue(QUEUE, {}))
        return self

    def open(self, topic: str, workspace_id: str) -> Office:
        """Use an existing workspace."""
        self.topic = topic
        self.admin = Actor(workspace_id, ADMIN_KEY, frozenset({"admin"}))
        return self

    async def do(self, command: Any, caller: Actor | None = None, **more: Any) -> Outcome:
        return await self.coordinator.submit(self.topic, caller or self.admin, command, **more)

    def ask(self, command: Any, caller: Actor | None = None, **more: Any) -> asyncio.Task[Outcome]:
        """Submit a command without waiting for its answer; it has arrived after one turn of the loop."""
        return asyncio.ensure_future(self.do(command, caller, **more))

    async def agent(self, slug: str, *roles: str) -> str:
        agent_id = "agt_" + self.ids.ulid()
        await self.do(RegisterAgent(agent_id, slug, ref_of(slug)))
        for role in roles:
            if role not in self.coordinator.peek(self.topic).roles:
                await self.do(CreateRole(role))
            await self.do(GrantRole(role, agent_id))
        return agent_id

    def key_of(self, agent_id: str) -> Actor:
        return Actor(self.admin.workspace_id, "key_" + agent_id[4:], frozenset({"agent"}), agent_id)

    def new_task(self, **more: Any) -> CreateTask:
        task_id = "task_" + self.ids.ulid()
        return CreateTask(task_id, more.pop("queue_id", QUEUE), ref_of(task_id), **more)

    async def task(self, **more: Any) -> str:
        command = self.new_task(**more)
        await self.do(command)
        return command.task_id

    async def hold(self, task_id: str, agent_id: str, lease_seconds: int = 0) -> str:
        claimed = (await self.do(ClaimTask(task_id, agent_id, lease_seconds))).first(*OUTCOMES)
        assert claimed is not None
        assert claimed.wire["type"] == "task.claimed", claimed.wire
        claim_id: str = claimed.wire["payload"]["claim_id"]
        return claim_id

    async def complete(self, claim_id: str, **more: Any) -> Outcome:
        return await self.do(CompleteClaim(claim_id, **more))

    def wait_for_task(self, agent_id: str, seconds: float = 30, **more: Any) -> asyncio.Task[Outcome]:
        """A worker that waits for the next task of the queue."""
        return self.ask(ClaimNext(QUEUE, agent_id, 60), wait_seconds=seconds, **more)

    @property
    def head(self) -> int:
        return self.store.head(self.topic).sequence


async def turns(count: int = 20) -> None:
    """Let the event loop run some turns, so that everything that is ready happens."""
    for _ in range(count):
        await asyncio.sleep(0)


def claimed_task(outcome: Outcome) -> str | None:
    """The task that a claim won, if it won one."""
    claimed = outcome.first("task.claimed")
    return claimed.wire["stream"]["stream_id"].split(":")[1] if claimed is not None else None


def two_offices() -> tuple[Office, Office]:
    """Two coordinators on one disk, in one event loop, so that tests can order their units as they like."""
    disk, clock = MemoryDisk(), HandClock()
    one, other = (Office(MemoryStore(clock, disk), CountedIds(lane)) for lane in (1, 2))
    return one, other
