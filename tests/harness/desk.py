"""A desk: one workspace on a memory store with a manual clock; commands go in, outcomes come out.

Everything except the event loop is real: each command is decided, folded and committed in a unit of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimTask, CompleteClaim
from redkey.commands.decision import Refused
from redkey.commands.registry import CreateQueue, CreateRole, CreateWorkspace, GrantRole, RegisterAgent
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.readmodel.world_loading import load_world
from redkey.reducers.world import SECOND, World
from redkey.services.outcome import Outcome, Settled, settled
from redkey.services.submission import Submission
from redkey.services.unit_of_work import TopicWork
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.wire.events import Ref
from redkey.wire.ids import ulid

START = 1_790_000_000 * SECOND
ADMIN_KEY = "key_" + ulid(0, bytes(9) + b"\x01")
QUEUE = "queue_work"


class HandClock:
    """Time advances only when a test moves it; the wall clock may be set separately."""

    def __init__(self, wall: int = START) -> None:
        self._wall, self._monotonic = wall, 0

    def wall(self) -> int:
        return self._wall

    def monotonic(self) -> int:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._wall += int(seconds * SECOND)
        self._monotonic += int(seconds * SECOND)

    def step_wall(self, seconds: float) -> None:
        self._wall += int(seconds * SECOND)


class CountedIds:
    """Ids in counting order; `lane` separates several sources."""

    def __init__(self, lane: int = 0) -> None:
        self._count = lane << 40

    def ulid(self) -> str:
        self._count += 1
        return ulid(START // 1_000_000, self._count.to_bytes(10))

    def nonce(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(16)


def ref_of(text: str) -> Ref:
    """The reference of a text, as wires contain it."""
    return content.ref(content.body(text.encode()))


class Desk:
    """One workspace, and shorthands for tests."""

    def __init__(self, clock: HandClock | None = None, disk: MemoryDisk | None = None, *, begin: bool = True) -> None:
        self.clock, self.ids = clock or HandClock(), CountedIds()
        self.store = MemoryStore(self.clock, disk or MemoryDisk())
        self.world = World()
        self.topic = "1.0.1001"
        self.workspace_id = "wk_" + self.ids.ulid()
        self.admin = Actor(self.workspace_id, ADMIN_KEY, frozenset({"admin"}))
        if begin:
            self.topic = self.store.create_topic()
            self.do(CreateWorkspace(self.workspace_id))
            self.do(CreateQueue(QUEUE, {}))

    def do(
        self,
        command: Any,
        caller: Actor | None = None,
        contents: Iterable[Content] = (),
        *,
        idem: str = "",
        body: str = "",
    ) -> Outcome:
        """Run one command in a unit of its own; return its outcome, or raise Refused."""
        submission = Submission(
            self.topic,
            caller or self.admin,
            command,
            tuple(contents),
            idem,
            body,
            None,  # type: ignore[arg-type]
        )
        try:
            with self.store.write(self.topic) as unit:
                work = TopicWork(unit, self.topic, self.world, self.ids)
                work.run_due()
                refused: Refused | None = None
                try:
                    outcome = work.run(submission)
                except Refused as found:
                    refused = found
                work.finish()
        except BaseException:
            self.reload()
            raise
        if refused is not None:
            raise refused
        return outcome

    def tick(self, seconds: float = 0) -> list[Settled]:
        """Let time pass, and record what is due."""
        self.clock.advance(seconds)
        before = self.world.sequence
        with self.store.write(self.topic) as unit:
            work = TopicWork(unit, self.topic, self.world, self.ids)
            work.run_due()
            work.finish()
        return self.records(before)

    def reload(self) -> None:
        """Drop the world and load it from its rows."""
        self.world = load_world(self.store, self.topic)

    def records(self, after: int = 0) -> list[Settled]:
        """The records after a sequence."""
        found: list[Settled] = []
        while page := self.store.read(self.topic, after):
            found += map(settled, page)
            after = page[-1].sequence
        return found

    def types(self, after: int = 0) -> list[str]:
        return [one.wire["type"] for one in self.records(after)]

    # Shorthands.

    def agent(self, slug: str, *roles: str, capabilities: tuple[str, ...] = ()) -> str:
        """Register an agent with these roles; missing roles are created."""
        agent_id = "agt_" + self.ids.ulid()
        self.do(RegisterAgent(agent_id, slug, ref_of(slug), capabilities))
        for role in roles:
            if role not in self.world.roles:
                self.do(CreateRole(role))
            self.do(GrantRole(role, agent_id))
        return agent_id

    def key_of(self, agent_id: str) -> Actor:
        """The agent's own key."""
        return Actor(self.workspace_id, "key_" + agent_id[4:], frozenset({"agent"}), agent_id)

    def task(self, queue_id: str = QUEUE, **more: Any) -> str:
        """Create a task."""
        task_id = "task_" + self.ids.ulid()
        self.do(CreateTask(task_id, queue_id, ref_of(task_id), **more))
        return task_id

    def claim(self, task_id: str, agent_id: str, lease_seconds: int = 0) -> Settled:
        """Claim a task; return the record of the outcome."""
        found = self.do(ClaimTask(task_id, agent_id, lease_seconds)).first(*OUTCOMES)
        assert found is not None
        return found

    def hold(self, task_id: str, agent_id: str, lease_seconds: int = 0) -> str:
        """Claim a task, which must succeed; return the claim id."""
        won = self.claim(task_id, agent_id, lease_seconds)
        assert won.wire["type"] == "task.claimed", won.wire
        claim_id: str = won.wire["payload"]["claim_id"]
        return claim_id

    def complete(self, claim_id: str, **more: Any) -> Outcome:
        return self.do(CompleteClaim(claim_id, **more))

    def state(self, task_id: str) -> str:
        return self.world.tasks[task_id].state


OUTCOMES = ("task.claimed", "task.claim_missed", "task.claim_rejected")
