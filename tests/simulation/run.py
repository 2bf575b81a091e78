"""One run: servers, workers, producers and owners in made-up time, all of it drawn from one seed.

First everything goes wrong that the seed has drawn; then nothing does any more, and whatever can be finished must be.
At the end the ledger is held against every invariant, and what the clients saw against the ledger.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.claims import (
    BlockClaim,
    ClaimNext,
    ClaimTask,
    CompleteClaim,
    FailClaim,
    HeartbeatClaim,
    ReleaseClaim,
    StartClaim,
)
from redkey.commands.decide import decide
from redkey.commands.decision import Refused
from redkey.commands.past import NOTHING
from redkey.commands.registry import (
    CreateQueue,
    CreateRole,
    CreateWorkspace,
    GrantCredits,
    GrantRole,
    HeartbeatAgent,
    RegisterAgent,
)
from redkey.commands.tasks import CancelTask, CreateTask, RetryTask, UnblockTask
from redkey.errors import CommitInDoubt, RedKeyError, StoreMisused
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.ports import SequencedStore
from redkey.readmodel.world_loading import load_world
from redkey.services import timers
from redkey.services.outcome import Outcome
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.memory.network import Weather
from tests.harness import invariants
from tests.harness.desk import ADMIN_KEY, OUTCOMES, HandClock, ref_of
from tests.harness.witness import Call, check
from tests.simulation.far_store import Open, contents, exact_clocks
from tests.simulation.faults import Faults, draw, draw_weather
from tests.simulation.loop import SimLoop
from tests.simulation.server import Crash, Gone, Machine, Server, SimIds, SimNetwork

QUEUES = ("queue_one", "queue_two")
ENDED = ("completed", "failed", "cancelled")
# How long all work may take once nothing goes wrong any more.
LIVENESS_SECONDS = 1800
# How long a task may lie there while somebody waits for it, once nothing goes wrong any more.
STARVING_SECONDS = 4.5
# How often one server waits for a task while another creates it, and how long the task may stay unclaimed then.
WAKE_UPS, WAKE_SECONDS = 12, 3.0


@dataclass
class Report:
    """What a run came to; the same seed gives the same report."""

    seed: int
    records: int
    calls: int
    unknown: int
    crashes: int
    seconds: float
    head: str


class Space:
    """One workspace of a run."""

    def __init__(self, topic: str, workspace_id: str) -> None:
        self.topic = topic
        self.admin = Actor(workspace_id, ADMIN_KEY, frozenset({"admin"}))
        self.agents: list[str] = []
        self.tasks: list[str] = []
        # What became of each grant of credits, by its amount: "recorded", "not recorded" or "unknown".
        self.grants: dict[int, str] = {}

    def key_of(self, agent_id: str) -> Actor:
        return Actor(self.admin.workspace_id, "key_" + agent_id[4:], frozenset({"agent"}), agent_id)


class Run:
    """All that happens under one seed."""

    def __init__(
        self, seed: int, faults: Faults | None = None, *, network: bool = False, stores: Open | None = None
    ) -> None:
        """With `network` the servers work on a database across a network, else on one disk of their machine.

        With `stores` that database is a real store. Then nothing happens while a unit is open, and the clock does not
        jump: how often a store asks its clock must not decide what it records.
        """
        self.seed, self.random = seed, Random(seed)
        self.faults = faults or draw(self.random)
        self.weather = draw_weather(self.random) if network else None
        if stores is not None and self.weather is not None:
            self.faults.clock_jump_every = self.weather.late_commit = 0
        self._stores, self._real = stores, cast("SequencedStore | None", None)
        # What the real store holds in the end.
        self.contents: dict[str, Any] = {}
        self.network: SimNetwork | None = None
        self.machine, self.disk, self.ids = Machine(), MemoryDisk(), SimIds(self.random)
        self.calls: dict[str, list[Call]] = {}
        self.broken: list[BaseException] = []
        self.leases = self.random.choice([(5, 10), (5, 60), (30, 300)])
        self.wild = True

    def go(self) -> Report:
        """Run it to its end; AssertionError when something does not hold."""
        loop = SimLoop(self.random)
        loop.set_exception_handler(self._heard)
        polls = timers.POLL_SECONDS, timers.TICK_SECONDS
        timers.POLL_SECONDS, timers.TICK_SECONDS = 0.5, 1.0
        try:
            with exact_clocks() if self._stores is not None else nullcontext():
                loop.run_until_complete(self._whole())
            seconds = loop.time()
            if self._stores is not None:
                self.contents = contents(self._reader())
            if self.broken:
                raise AssertionError(f"something broke: {self.broken[0]!r}") from self.broken[0]
            return self._judge(seconds)
        finally:
            timers.POLL_SECONDS, timers.TICK_SECONDS = polls
            _end(loop)
            self._close()

    def _close(self) -> None:
        if self._stores is not None:
            for server in self.servers:
                server.store.close()
            if self._real is not None:
                self._real.close()

    def _heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        cause = context.get("exception")
        if isinstance(cause, Crash):
            for server in self.servers:
                if server.up and server.store is cause.args[0]:
                    server.crash()
                    loop.call_later(self.random.uniform(0, self.faults.down_seconds), server.boot)
        elif isinstance(cause, BaseException) and not self._is_of_the_dead(cause):
            self.broken.append(cause)

    def _is_of_the_dead(self, cause: BaseException) -> bool:
        """What a crashed server had begun goes on here until it next asks its store, which is closed."""
        crashed = any(server.crashes for server in self.servers)
        return crashed and isinstance(cause, StoreMisused) and cause.code == "store_closed"

    async def _whole(self) -> None:
        loop = asyncio.get_running_loop()
        calm = replace(self.faults)
        self.faults.__dict__.update(Faults().__dict__)
        count, storm = self.random.choice([1, 1, 2]), self.weather
        if storm is not None:
            assert isinstance(loop, SimLoop)
            calm_weather = Weather(delay_seconds=storm.delay_seconds, notice_seconds=storm.notice_seconds)
            count, self.network = 2, SimNetwork(self.machine, self.disk, calm_weather, self.random, loop)
        self.servers = [
            Server(self.machine, self.disk, self.faults, self.random, self.network, self._stores) for _ in range(count)
        ]
        for server in self.servers:
            server.boot()
        self.spaces = [await self._begin() for _ in range(self.random.choice([1, 1, 2]))]
        self.faults.__dict__.update(calm.__dict__)
        if self.network is not None and storm is not None:
            self.network.weather = storm
        busy = [self._worker(space, agent_id) for space in self.spaces for agent_id in space.agents]
        busy += [self._owner(space) for space in self.spaces]
        busy += [self._grant(space) for space in self.spaces]
        work = [asyncio.ensure_future(one) for one in busy]
        shaking = asyncio.ensure_future(self._shake())
        if self.network is not None:
            work.append(asyncio.ensure_future(self._watch()))
        await asyncio.wait_for(asyncio.gather(*(self._produce(space) for space in self.spaces)), LIVENESS_SECONDS)
        await asyncio.sleep(self.random.uniform(10, 200))
        # From here on nothing goes wrong: what can be finished must be.
        shaking.cancel()
        self.wild = False
        self.faults.__dict__.update(Faults().__dict__)
        if self.network is not None:
            self.network.weather = calm_weather
        bound = loop.time() + LIVENESS_SECONDS
        while not all(self._ended(space) for space in self.spaces):
            assert loop.time() < bound, f"unfinished: {[self._unfinished(space)[:3] for space in self.spaces]}"
            await asyncio.sleep(5)
        for one in work:
            one.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        while not all(server.up for server in self.servers):
            await asyncio.sleep(5)
        if self.network is not None:
            # Copies of claims that are still waiting would take the tasks.
            while any(server.coordinator.waiting for server in self.servers):
                await asyncio.sleep(5)
            for _ in range(WAKE_UPS):
                await self._wake_up(self.random.choice(self.spaces), self.network.weather)
        for server in self.servers:
            await server.timers.stop()
            await server.coordinator.stop()

    async def _shake(self) -> None:
        """The wall clock jumps."""
        while self.faults.clock_jump_every:
            await asyncio.sleep(self.random.uniform(0, 2 * self.faults.clock_jump_every))
            jump = self.random.uniform(-1, 1) * self.faults.clock_jump_seconds
            self.machine.wall_offset += int(jump * 10**9)

    async def _watch(self) -> None:
        """Look at what the servers show: nothing that is not recorded; and nobody waits for what lies there."""
        starving: dict[tuple[int, str], float] = {}
        while not self.broken:
            await asyncio.sleep(self.random.uniform(0, 0.1 if self.wild else 1))
            try:
                for number, server in enumerate(self.servers):
                    for space in self.spaces if server.up else ():
                        self._look(server, space)
                        if self.wild or not self._starves(server, space):
                            starving.pop((number, space.topic), None)
                            continue
                        now = asyncio.get_running_loop().time()
                        waited = now - starving.setdefault((number, space.topic), now)
                        assert waited < STARVING_SECONDS, "a task lies there while somebody waits for it"
            except AssertionError as found:
                self.broken.append(found)

    def _look(self, server: Server, space: Space) -> None:
        try:
            shown = server.coordinator.peek(space.topic).sequence
        except RedKeyError:
            return
        assert shown <= self._head(space), f"a world at {shown} is ahead of the ledger at {self._head(space)}"

    def _starves(self, server: Server, space: Space) -> bool:
        """True while somebody waits at a server for a task that is there."""
        waiting = server.coordinator._waiters._waiting.get(space.topic, {})
        claims = [one for line in waiting.values() for one in line if not one.over]
        if not claims:
            return False
        world = load_world(self._reader(), space.topic)
        return any(decide(world, one.command, one.caller, world.timestamp, self.ids, NOTHING).drafts for one in claims)

    # The workspaces and who works in them.

    async def _begin(self) -> Space:
        server, random = self.servers[0], self.random
        topic = server.store.create_topic()
        space = Space(topic, "wk_" + self.ids.ulid())
        await self._call(space, CreateWorkspace(space.admin.workspace_id))
        for queue_id in QUEUES:
            await self._call(space, CreateQueue(queue_id, {"lease_losses": random.choice([2, 5])}))
        await self._call(space, CreateRole("role_x"))
        for number in range(random.randint(2, 5)):
            agent_id = "agt_" + self.ids.ulid()
            await self._call(space, RegisterAgent(agent_id, f"agent{number}", ref_of("card")))
            space.agents.append(agent_id)
            if not number:
                await self._call(space, GrantRole("role_x", agent_id))
        return space

    async def _produce(self, space: Space) -> None:
        random = self.random
        for _ in range(random.randint(5, 30)):
            await asyncio.sleep(random.uniform(0, 4))
            task_id = "task_" + self.ids.ulid()
            command = CreateTask(
                task_id,
                random.choice(QUEUES),
                ref_of(task_id),
                random.choice(["urgent", "normal", "normal", "low"]),
                roles=("role_x",) if random.random() < 0.2 else (),
                waits_for=tuple(random.sample(space.tasks, min(len(space.tasks), random.choice([0, 0, 0, 1, 2])))),
                lease_seconds=random.choice([0, 0, 30]),
                deadline_seconds=random.choice([0, 0, 0, 60, 600]),
                max_attempts=random.choice([1, 1, 2, 3]),
            )
            call = await self._call(space, command)
            if call.told is not None:
                space.tasks.append(task_id)

    async def _owner(self, space: Space) -> None:
        """Cancels, tries again, lifts blocks; when all is calm it lifts every block."""
        while True:
            await asyncio.sleep(self.random.uniform(1, 20))
            if not space.tasks:
                continue
            task_id = self.random.choice(space.tasks)
            if not self.wild:
                blocked = [key for key, state in self._states(space).items() if state == "blocked"]
                for key in blocked:
                    await self._call(space, UnblockTask(key))
            elif self.random.random() < 0.4:
                kind = self.random.choice([CancelTask, RetryTask, UnblockTask])
                await self._call(space, kind(task_id))

    async def _grant(self, space: Space) -> None:
        """Grant credits, each time another amount, with one request that has no key: it is recorded once or not."""
        while True:
            await asyncio.sleep(self.random.uniform(0, 8))
            if not self.wild:
                continue
            # Large amounts: credits never run out.
            amount, server = 10**9 + len(space.grants), self.random.choice(self.servers)
            space.grants[amount] = "unknown"
            if not server.up:
                space.grants[amount] = "not recorded"
                continue
            try:
                await server.handle(space.topic, space.admin, GrantCredits(amount), (), "", "", 0)
                space.grants[amount] = "recorded"
            except (CommitInDoubt, Gone):
                pass
            except RedKeyError:
                space.grants[amount] = "not recorded"

    async def _wake_up(self, space: Space, weather: Weather) -> None:
        """One server waits for a task while it writes something else, and another server creates one."""
        waiting, creating = self.random.sample(self.servers, 2)
        agent_id, task_id = "agt_" + self.ids.ulid(), "task_" + self.ids.ulid()
        caller, delay = space.key_of(agent_id), weather.delay_seconds + weather.notice_seconds
        registering = RegisterAgent(agent_id, "waits" + agent_id[-6:].lower(), ref_of("card"))
        await waiting.handle(space.topic, space.admin, registering, (), "", "", 0)

        async def later(server: Server, command: Any, actor: Actor) -> Any:
            await asyncio.sleep(self.random.uniform(0, 2 * weather.delay_seconds))
            return await server.handle(space.topic, actor, command, (), "", "", 0)

        claim = asyncio.ensure_future(
            waiting.handle(space.topic, caller, ClaimNext(QUEUES[0], agent_id, 60), (), "", "", 1000)
        )
        while not waiting.coordinator.waiting:
            await asyncio.sleep(0.1)
        await asyncio.gather(
            later(waiting, HeartbeatAgent(agent_id), caller),
            later(creating, CreateTask(task_id, QUEUES[0], ref_of(task_id)), space.admin),
        )
        done, _ = await asyncio.wait([claim], timeout=WAKE_SECONDS + 20 * delay)
        assert done, "a server that waits was not woken by a task of another server"
        await waiting.handle(space.topic, caller, CompleteClaim(_won(claim.result())), (), "", "", 0)

    async def _worker(self, space: Space, agent_id: str) -> None:
        random, caller = self.random, space.key_of(agent_id)
        claim_id = ""
        while True:
            await asyncio.sleep(random.uniform(0, 3 if self.wild else 0.5))
            if random.random() < 0.1:
                await self._call(space, HeartbeatAgent(agent_id, random.choice([None, 1, 2])), caller)
            if not claim_id:
                claim_id = await self._claim(space, agent_id, caller)
            if claim_id:
                claim_id = await self._work(space, agent_id, caller, claim_id)

    async def _claim(self, space: Space, agent_id: str, caller: Actor) -> str:
        random = self.random
        lease = random.randint(*self.leases)
        if self.wild and space.tasks and random.random() < 0.4:
            call = await self._call(space, ClaimTask(random.choice(space.tasks), agent_id, lease), caller)
        else:
            wait = random.choice([0, 5, 20])
            call = await self._call(space, ClaimNext(random.choice(QUEUES), agent_id, lease), caller, wait=wait)
        return _won(call.told)

    async def _work(self, space: Space, agent_id: str, caller: Actor, claim_id: str) -> str:
        """Work at what is held; the next claim if one came with the end."""
        random = self.random
        if random.random() < 0.5:
            await self._call(space, StartClaim(claim_id), caller)
        for _ in range(random.randint(0, 3)):
            await asyncio.sleep(random.uniform(0, self.leases[1] / 2 if self.wild else 1))
            await self._call(space, HeartbeatClaim(claim_id), caller, key=random.random() < 0.3)
        if self.wild and random.random() < self.faults.paused:
            await asyncio.sleep(random.uniform(0, self.faults.pause_seconds))
        if self.wild and random.random() < self.faults.forgetful:
            return ""
        following = ClaimNext(random.choice(QUEUES), agent_id, random.randint(*self.leases))
        asked = following if random.random() < 0.3 else None
        end: Any = CompleteClaim(claim_id, claim_next=asked)
        if self.wild and random.random() < 0.4:
            end = random.choice(
                [
                    FailClaim(claim_id, random.choice(["error", "rejected"]), ref_of("why"), asked),
                    ReleaseClaim(claim_id),
                    BlockClaim(claim_id, "auth", ref_of("why")),
                    BlockClaim(claim_id, "dependency", ref_of("why"), self._some_task(space)),
                ]
            )
        call = await self._call(space, end, caller)
        return _won(call.told.next) if call.told is not None and call.told.next is not None else ""

    def _some_task(self, space: Space) -> tuple[str, ...]:
        return (self.random.choice(space.tasks),) if space.tasks and self.random.random() < 0.5 else ()

    # The network.

    async def _call(
        self, space: Space, command: Any, caller: Actor | None = None, *, wait: float = 0, key: bool = True
    ) -> Call:
        """Send until there is an answer, always with the same key; after a while the client gives up."""
        loop, caller = asyncio.get_running_loop(), caller or space.admin
        call = Call(command, loop.time(), self._head(space), agent_id=caller.agent_id)
        self.calls.setdefault(space.topic, []).append(call)
        idem = self.random.randbytes(16).hex() if key else ""
        body = hashlib.sha256(msgspec.json.encode(command, order="sorted")).hexdigest()[:16]
        for _ in range(self.random.choice([3, 12])):
            sent = (space.topic, caller, command, (), idem, body, wait)
            answer = await self._send(self.random.choice(self.servers), sent, idem != "")
            if isinstance(answer, Outcome):
                call.told = answer
            elif isinstance(answer, Refused):
                call.refused = answer.code
            if answer is not None:
                call.ended, call.last = loop.time(), self._head(space)
                return call
            await asyncio.sleep(self.random.uniform(0, 2))
        return call

    async def _send(self, server: Server, sent: tuple[Any, ...], may_copy: bool) -> Outcome | Refused | None:
        """One try: the answer, or None when nobody knows whether the request was taken."""
        random, faults = self.random, self.faults
        while may_copy and random.random() < faults.duplicated:
            # A copy of the request is on its way too, and nobody waits for its answer.
            copy = asyncio.ensure_future(self._deliver(random.choice(self.servers), sent))
            copy.add_done_callback(lambda done: done.cancelled() or done.exception())
        if random.random() < faults.lost:
            await asyncio.sleep(1)
            return None
        try:
            answer = await asyncio.wait_for(self._deliver(server, sent), 10 + sent[-1])
        except TimeoutError:
            return None
        await asyncio.sleep(random.uniform(0, faults.delay_seconds))
        return None if random.random() < faults.lost else answer

    async def _deliver(self, server: Server, sent: tuple[Any, ...]) -> Outcome | Refused | None:
        await asyncio.sleep(self.random.uniform(0, self.faults.delay_seconds))
        if not server.up:
            return None
        try:
            return await server.handle(*sent)
        except Refused as refused:
            return refused
        except RedKeyError as cause:
            if cause.code == "internal_error":
                self.broken.append(cause.__cause__ or cause)
            return None
        except Gone:
            return None

    # Questions to the disk.

    def _reader(self) -> SequencedStore:
        if self._stores is None:
            return MemoryStore(HandClock(), self.disk)
        if self._real is None:
            self._real = self._stores(HandClock())
        return self._real

    def _head(self, space: Space) -> int:
        if self._stores is not None:
            return self._reader().head(space.topic).sequence
        layer = self.disk.topics.get(space.topic)
        return layer.head().sequence if layer is not None else 0

    def _states(self, space: Space) -> dict[str, str]:
        if self._stores is not None:
            return {row.key: row.listed.split("/")[1] for row in self._reader().rows(space.topic, "task")}
        layer = self.disk.topics[space.topic]
        return {row.key: row.listed.split("/")[1] for (kind, _), row in layer.rows.items() if row and kind == "task"}

    def _unfinished(self, space: Space) -> list[tuple[str, str]]:
        return [(key, state) for key, state in self._states(space).items() if state not in ENDED]

    def _ended(self, space: Space) -> bool:
        return not self._unfinished(space)

    # The judgement.

    def _judge(self, seconds: float) -> Report:
        reader = self._reader()
        head = hashlib.sha256()
        records = 0
        for space in self.spaces:
            wires = invariants.check_topic(reader, space.topic)
            check(self.calls[space.topic], wires)
            self._judge_dependencies(wires)
            self._judge_leases(space, wires)
            _judge_checkpoints(reader, space.topic)
            _judge_grants(space, wires)
            records += len(wires)
            head.update(reader.head(space.topic).running_hash)
        calls = [call for found in self.calls.values() for call in found]
        unknown = sum(call.told is None and not call.refused for call in calls)
        crashes = sum(server.crashes for server in self.servers)
        return Report(self.seed, records, len(calls), unknown, crashes, seconds, head.hexdigest())

    def _judge_leases(self, space: Space, wires: list[dict[str, Any]]) -> None:
        """A lease lasts as long as was promised, however the wall clock jumps. A process that begins anew takes the
        wall clock's time, so runs with crashes promise less."""
        if any(server.crashes for server in self.servers):
            return
        moments = {place: at for server in self.servers for place, at in server.moments.get(space.topic, {}).items()}
        if self.network is not None:
            moments = self.network.moments[space.topic]
        asked: dict[str, int] = {}
        since: dict[str, float] = {}
        for place, wire in enumerate(wires, 1):
            claim_id = wire["payload"].get("claim_id", "")
            if wire["type"] == "task.claim_attempted":
                asked[claim_id] = wire["payload"]["lease_seconds"]
            if wire["type"] in ("task.claimed", "task.lease_extended"):
                since[claim_id] = moments[place]
            elif wire["type"] == "task.lease_expired":
                lasted = moments[place] - since[claim_id]
                assert lasted >= 0.94 * asked[claim_id] - 1, f"{place}: a lease of {asked[claim_id]} s: {lasted} s"

    @staticmethod
    def _judge_dependencies(wires: list[dict[str, Any]]) -> None:
        """I12 for simple tasks: none opens before all that it waits for is complete."""
        waits: dict[str, set[str]] = {}
        done: set[str] = set()
        for place, wire in enumerate(wires, 1):
            stream, kind = wire["stream"]["stream_id"], wire["type"]
            if kind == "task.created":
                waits[stream] = set(wire["payload"].get("waits_for", ())) - done
            elif kind == "task.complete":
                done.add(stream.split(":")[1])
            elif kind == "task.available":
                assert waits[stream] <= done, f"{place}: {stream} opened before {waits[stream] - done}"


def _judge_grants(space: Space, wires: list[dict[str, Any]]) -> None:
    """A request without a key is recorded once at most: once when it was answered, never when it was refused."""
    recorded = Counter(wire["payload"]["amount"] for wire in wires if wire["type"] == "credits.granted")
    for amount, outcome in space.grants.items():
        allowed = {"recorded": (1,), "not recorded": (0,), "unknown": (0, 1)}[outcome]
        assert recorded[amount] in allowed, f"a grant that was {outcome} is on the ledger {recorded[amount]} times"


def _judge_checkpoints(reader: SequencedStore, topic: str) -> None:
    """Whatever was signed is there, as it was signed."""
    head, tree = reader.head(topic).sequence, reader.tree(topic)
    for size, note in reader.checkpoints(topic, 1_000_000):
        assert size <= head, f"a checkpoint over {size} records of {head}"
        assert open_checkpoint(note)[0].root == tree.root(size), f"a checkpoint over other records than the {size}"


def _end(loop: SimLoop) -> None:
    """Let go of whatever is still under way, so that a run that failed leaves nothing behind."""

    async def cancel_all() -> None:
        left = asyncio.all_tasks(loop) - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    loop.run_until_complete(cancel_all())
    loop.end_threads()
    loop.close()


def _won(outcome: Outcome | None) -> str:
    settled = outcome.first(*OUTCOMES) if outcome is not None else None
    if settled is None or settled.wire["type"] != "task.claimed":
        return ""
    claim_id: str = settled.wire["payload"]["claim_id"]
    return claim_id
