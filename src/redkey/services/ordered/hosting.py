"""The ordered workspaces of one server: a driver for each, from its first message or from where this server stopped.

Servers of one database share its workspaces: a workspace that another of them begins gets a driver here soon after.
Topics of networks other than this server's are neither read nor written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.errors import AppendRefused, NetworkAway, NetworkRefused, RedKeyError
from redkey.ledger.fees import CREATE_TOPIC
from redkey.ledger.network import NetworkTopic, is_projected, network_topic, projected_topic
from redkey.ledger.ports import Clock, SequencedStore
from redkey.ledger.record import EMPTY_HEAD
from redkey.reducers.world import World
from redkey.services.ordered.driver import OrderedTopic
from redkey.services.ordered.means import OrderMeans
from redkey.services.ordered.messages import BEGINNING
from redkey.services.ordered.projection import NoIds, Projection, StructureMissing
from redkey.services.workspaces import setting_of, topic_of

# How often to look for workspaces that another server of the store began.
_LOOK_SECONDS = 2.0
# How long a new driver may take to read the existing messages of its topic.
_CATCH_UP_SECONDS = 60.0
# How many pages of a topic's first messages are searched for its workspace.
_FIRST_PAGES = 10
T = TypeVar("T")
_log = structlog.get_logger("redkey.ordered")


class TopicFacts(msgspec.Struct, frozen=True):
    """A topic of the network as its mirror shows it now."""

    memo: str
    # Whether this server's account may change it; and whether it may write to it, judging by the keys.
    is_ours: bool
    may_write: bool
    # The admin key in hex; empty if it is a list of keys, or if there is none.
    admin_key: str = ""


class Topics(Protocol):
    """The topics of a network, as this server's account uses them; all calls but `draw` block."""

    name: str
    account: str

    def open(self, topic: str) -> NetworkTopic: ...

    def draw(self) -> str:
        """Return a new transaction id."""

    def create(self, memo: str, transaction_id: str) -> str:
        """Create a topic that only this account may write to; a repeat with the same id creates no other. NetworkAway
        if lost.
        """

    def describe(self, topic: str) -> TopicFacts | None:
        """Return a topic; None if it is not on this network, or was deleted."""

    def account_key(self, account: str) -> str:
        """Return the key of an account in hex; empty if there is no such account, or its key is a list."""

    def allow(self, topic: str, accounts: Sequence[str], transaction_id: str) -> None:
        """Let these accounts write to a topic of this server beside its own account, and no others."""

    def last_change(self, topic: str) -> str:
        """Return the last transaction by which this account changed a topic; empty if there is none."""

    def delete(self, topic: str, transaction_id: str) -> None:
        """Delete a topic of this server; no account can write to it after that."""

    def close(self) -> None: ...


# Gives the coordinator a driver; opens an empty store in memory.
Order = Callable[[OrderedTopic], None]
Scratch = Callable[[Clock], SequencedStore]


class Orders:
    """The ordered workspaces of one server."""

    def __init__(self, topics: Topics, means: OrderMeans, order: Order, scratch: Scratch) -> None:
        """`order` gives the coordinator a driver; `scratch` opens an empty store in memory."""
        self.topics, self._means, self._order, self._scratch = topics, means, order, scratch
        self._drivers: dict[str, OrderedTopic] = {}
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow the topics of all ordered workspaces of the store."""
        self._look()
        self._looking = asyncio.create_task(self._keep_looking(), name="redkey_orders")

    async def stop(self) -> None:
        """End all drivers."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await asyncio.gather(*(driver.stop() for driver in self._drivers.values()))

    def close(self) -> None:
        """Close the connections to the network."""
        self.topics.close()

    def driver(self, topic: str) -> OrderedTopic | None:
        """Return the driver of a local topic; None if this server does not follow it."""
        return self._drivers.get(topic)

    @property
    def noticed(self) -> int:
        """The number of wrong rows that mirrors showed."""
        return sum(sum(driver.network.noticed.values()) for driver in self._drivers.values())

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Call the network, which takes a while; a failure is Refused with its reason, for operators."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._means.threads, work)
        except NetworkAway as away:
            raise Refused(503, away.code, f"{away.message}.", retry_seconds=2) from away
        except NetworkRefused as refused:
            status = 402 if refused.code == "balance_empty" else 409
            raise Refused(status, refused.code, f"{refused.message}.") from refused

    async def prepare(self, workspace_id: str, topic: str) -> OrderedTopic:
        """Return the driver of a workspace on this topic, begun if necessary; an empty topic asks for a new one.

        Refused if the workspace or the topic is something else already.
        """
        store, name = self._means.store, self.topics.name
        local = topic_of(store, workspace_id)
        if local is not None:
            driver = self._drivers.get(local)
            if driver is None:
                detail = "There is such a workspace already, and it is not ordered by this server's network."
                raise Refused(409, "workspace_exists", detail)
            if topic not in ("", driver.network.topic):
                raise Refused(409, "order_exists", f"The topic {driver.network.topic} orders it; that never changes.")
            return await self._caught_up(driver)
        created = ""
        if not topic:
            topic, created = await self._own_topic(workspace_id)
        await self._check_topic(workspace_id, topic)
        local = projected_topic(name, topic)
        try:
            await self._means.path.create_topic(setting_of(workspace_id), local)
        except AppendRefused as refused:
            detail = f"The topic {topic} orders another workspace of this server."
            raise Refused(409, "topic_taken", detail, "/topic") from refused
        driver = self._drive(local)
        if created:
            reserve = partial(driver.desk.reserve_change, topic=local, name=created, tinycents=CREATE_TOPIC)
            await self._means.path.act(local, lambda unit: reserve(unit))
        return await self._caught_up(driver)

    async def change(self, driver: OrderedTopic, tinycents: int, work: Callable[[str], T]) -> T:
        """Change a topic by a transaction, whose id `work` gets; reserve its fee before and book it after."""
        name, topic = self.topics.draw(), driver.topic
        await self._means.path.act(topic, lambda unit: driver.desk.reserve_change(unit, topic, name, tinycents))
        return await self.in_thread(lambda: work(name))

    async def book_change(self, driver: OrderedTopic) -> None:
        """Book the last change of a topic, which a command beside this server made."""
        topic = driver.topic
        name = await self.in_thread(lambda: self.topics.last_change(driver.network.topic))
        if name:
            await self._means.path.act(topic, lambda unit: driver.desk.reserve_change(unit, topic, name, 0))

    async def _own_topic(self, workspace_id: str) -> tuple[str, str]:
        """Return the new topic of a workspace and its transaction: created once, even after a crash in between."""
        setting, act = BEGINNING + workspace_id, self._means.path.act_on_store
        name = self._means.store.setting(setting)
        if not name:
            name = self.topics.draw()
            await act(lambda unit: unit.put_setting(setting, name))
        try:
            return await self.in_thread(lambda: self.topics.create(f"RedKey {workspace_id}", name)), name
        except Refused as refused:
            if refused.code == "transaction_lost":
                # It can never be recorded any more: the next try uses another id.
                await act(lambda unit: unit.put_setting(setting, ""))
            raise

    async def _check_topic(self, workspace_id: str, topic: str) -> None:
        name = self.topics.name
        facts = await self.in_thread(lambda: self.topics.describe(topic))
        if facts is None:
            detail = f"There is no topic {topic} on {name}, or it was deleted; check the id and `hedera.network`."
            raise Refused(422, "topic_unknown", detail, "/topic")
        if not facts.may_write:
            detail = (
                f"The account {self.topics.account} may not write to {topic}: let its owner add this server's key to "
                f"the submit key, or put the submit key into `hedera.submit_keys` as {topic}.key."
            )
            raise Refused(422, "topic_foreign", detail, "/topic")
        found = await self.in_thread(lambda: self._workspace_on(topic))
        if found not in ("", workspace_id):
            detail = f"The topic {topic} orders the workspace {found}; name that one to follow it."
            raise Refused(409, "topic_taken", detail, "/topic")

    def _workspace_on(self, topic: str) -> str:
        """Return the workspace that the messages of a topic begin; empty if they begin none."""
        network, world, store = self.topics.open(topic), World(), self._scratch(self._means.clock)
        local, head = store.create_topic(projected_topic(self.topics.name, topic)), EMPTY_HEAD
        for _ in range(_FIRST_PAGES):
            messages = network.read(head)
            if not messages or world.workspace.workspace_id:
                break
            with store.write(local) as unit:
                work = Projection(unit, local, world, NoIds())
                with suppress(StructureMissing):
                    work.project(messages)
                work.finish()
            head = work.cursor
        return world.workspace.workspace_id

    def _drive(self, local: str) -> OrderedTopic:
        driver = self._drivers.get(local)
        if driver is None:
            network = self.topics.open(network_topic(local))
            driver = self._drivers[local] = OrderedTopic(local, network, self._means)
            self._order(driver)
            driver.start()
        return driver

    async def _caught_up(self, driver: OrderedTopic) -> OrderedTopic:
        try:
            await asyncio.wait_for(driver.caught_up.wait(), _CATCH_UP_SECONDS)
        except TimeoutError as cause:
            why = (driver.waits_for and f"it needs the structure {driver.waits_for}") or driver.failure or "it is long"
            detail = f"The topic {driver.network.topic} is not read to its end yet: {why}. Try again later."
            raise Refused(503, "order_unavailable", detail, retry_seconds=2) from cause
        return driver

    def _look(self) -> None:
        for topic in self._means.store.topics():
            if is_projected(topic) and projected_topic(self.topics.name, network_topic(topic)) == topic:
                self._drive(topic)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                self._look()
            except RedKeyError as cause:
                _log.warning("the store cannot be read", code=cause.code, reason=cause.message)
