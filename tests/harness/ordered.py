"""A topic of a network as a plain list, and servers that read it: everything except the network is real.

The list gives each message its sequence, time and running hash, as a network does. A server has its own store, decides
by what it has read so far, and submits; tests decide when it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.commands.policies import AssignTopic
from redkey.commands.registry import CreateQueue, CreateWorkspace
from redkey.ledger.network import projected_topic
from redkey.ledger.ports import Content
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import chained
from redkey.reducers.world import World
from redkey.services.ordered.projection import StructureMissing
from redkey.services.ordered.work import OrderedWork
from redkey.services.outcome import Outcome
from redkey.services.submission import Submission
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import ADMIN_KEY, QUEUE, CountedIds, Desk, HandClock

NETWORK, TOPIC = "loopback", "0.0.9000"
OPERATOR, PARTNER, STRANGER = "0.0.100", "0.0.200", "0.0.666"


class ListTopic:
    """A topic whose messages are a list."""

    def __init__(self, clock: HandClock | None = None) -> None:
        self.clock = clock or HandClock()
        self.messages: list[Record] = []

    def order(self, data: bytes, payer: str) -> int:
        """Append a message at the time of the clock; return its sequence."""
        last = self.messages[-1] if self.messages else None
        time = max(self.clock.wall(), (last.timestamp if last is not None else 0) + 1)
        self.messages.append(chained(last or EMPTY_HEAD, TOPIC, payer, time, data)[0])
        return len(self.messages)

    def read(self, head: Head, limit: int = 100) -> Sequence[Record]:
        """The messages after a head."""
        return self.messages[head.sequence : head.sequence + limit]


class OrderedDesk(Desk):
    """One server: its store and its world, up to the last message that it has read."""

    def __init__(self, network: ListTopic, payer: str = OPERATOR, *, lane: int = 0, begin: bool = False) -> None:
        super().__init__(network.clock, begin=False)
        self.network, self.payer, self.ids = network, payer, CountedIds(lane)
        self.store = MemoryStore(network.clock, MemoryDisk())
        self.topic = self.store.create_topic(projected_topic(NETWORK, TOPIC))
        self.world = World()
        self.sent: list[int] = []
        self.operator = Actor(self.workspace_id, ADMIN_KEY, frozenset({"operator"}))
        if begin:
            self.do(CreateWorkspace(self.workspace_id))
            self.do(AssignTopic(TOPIC, NETWORK, "order", "managed"), self.operator)
            self.do(CreateQueue(QUEUE, {}))

    def unit(self, work: Any) -> Any:
        """Run a function in a unit of its own; return its result. If it fails, the world is loaded again."""
        try:
            with self.store.write(self.topic) as unit:
                ordered = OrderedWork(unit, self.topic, self.world, self.ids)
                found = work(ordered)
                ordered.finish()
                return found
        except BaseException:
            self.reload()
            raise

    def read(self, count: int = 1_000_000) -> str | None:
        """Project the next messages; return the hash of the structure that it waits for, if any."""

        def work(ordered: OrderedWork) -> str | None:
            try:
                ordered.project(self.network.read(ordered.cursor, count))
            except StructureMissing as missing:
                return missing.sha256
            return None

        found: str | None = self.unit(work)
        return found

    def ask(self, command: Any, caller: Actor | None = None, contents: Iterable[Content] = (), **more: str) -> Any:
        """Decide a command by the local state and submit it; return its submission, or its outcome if it needs none."""
        submission = Submission(
            self.topic,
            caller or self.admin,
            command,
            tuple(contents),
            more.get("idem", ""),
            more.get("body", ""),
            None,  # type: ignore[arg-type]
        )
        outcome: Outcome = self.unit(lambda ordered: ordered.run(submission))
        if not outcome.outgoing:
            return outcome
        submission.sent = tuple(self.network.order(one.message, self.payer) for one in outcome.outgoing)
        return submission

    def answer(self, submission: Submission) -> Outcome:
        """The outcome of a command, after everything up to it is read."""

        def work(ordered: OrderedWork) -> Outcome | Refused:
            try:
                return ordered.answer(submission)
            except Refused as refused:
                return refused

        found: Outcome | Refused = self.unit(work)
        if isinstance(found, Refused):
            raise found
        return found

    def do(self, command: Any, caller: Actor | None = None, contents: Iterable[Content] = (), **more: str) -> Outcome:
        asked = self.ask(command, caller, contents, **more)
        if isinstance(asked, Outcome):
            return asked
        self.read()
        return self.answer(asked)

    def ledger(self) -> list[Record]:
        """Every record, with payer, time and running hash."""
        return [*self.store.read(self.topic, 0, 1_000_000)]
