"""Servers of several organisations on one topic of a network, each with a coordinator, a driver and a store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.policies import AddParty, AssignTopic
from redkey.commands.registry import CreateQueue, CreateWorkspace
from redkey.ledger.fees import USD
from redkey.ledger.network import projected_topic
from redkey.services.network_fees import FeeLimits
from redkey.services.ordered.driver import OrderedTopic
from redkey.services.ordered.means import OrderMeans
from redkey.services.ordered.messages import read_cursor
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import QUEUE, CountedIds
from tests.harness.office import Office


class Server(Office):
    """A server of one organisation."""

    def __init__(self, network: Any, lane: int) -> None:
        super().__init__(MemoryStore(SystemClock(), MemoryDisk()), CountedIds(lane))
        self.topic = self.store.create_topic(projected_topic(network.network, network.topic))
        self.bodies: dict[str, bytes] = {}
        self.threads, self.readers = ThreadPoolExecutor(40), ThreadPoolExecutor(4)
        self.clock = SystemClock()
        means = OrderMeans(
            path=self.coordinator,
            store=self.store,
            clock=self.clock,
            threads=self.threads,
            readers=self.readers,
            fetch=self.bodies.get,
            facts=lambda topic: [],
            limits=FeeLimits(10**6 * USD, 10**6 * USD),
            poll_seconds=0.02,
            own_seconds=0.01,
        )
        self.driver = OrderedTopic(self.topic, network, means)
        self.coordinator.order(self.driver)

    async def begin(self, workspace_id: str = "") -> Server:
        """Create the workspace on the topic."""
        workspace_id = "wk_" + self.ids.ulid()
        self.open(self.topic, workspace_id)
        operator = Actor(workspace_id, self.admin.key_id, frozenset({"operator"}))
        network = self.driver.network
        await self.do(CreateWorkspace(workspace_id))
        await self.do(AssignTopic(network.topic, network.network, "order", "managed"), operator)
        await self.do(CreateQueue(QUEUE, {}))
        return self

    def read_to(self) -> int:
        """The last message that was projected."""
        return read_cursor(self.store, self.topic).sequence


@asynccontextmanager
async def running(*servers: Server) -> AsyncIterator[None]:
    """Let servers follow the topic."""
    for server in servers:
        server.driver.start()
    try:
        for server in servers:
            await server.driver.caught_up.wait()
        yield
    finally:
        for server in servers:
            await server.driver.stop()
            await server.coordinator.stop()
            server.threads.shutdown()
            server.readers.shutdown()


async def until(holds: Callable[[], object]) -> None:
    """Wait for a condition, a minute at most."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def join(ours: Server, theirs: Server) -> None:
    """Create the workspace, and let the other organisation's account write."""
    await ours.begin()
    operator = Actor(ours.admin.workspace_id, ours.admin.key_id, frozenset({"operator"}))
    await ours.do(AddParty(theirs.driver.network.payer), operator)
    theirs.admin = ours.admin
