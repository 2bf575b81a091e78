"""The driver of one ordered workspace: it carries requests to the network, and what is ordered there back.

Requests are submitted in threads. A follower reads the topic and has its messages projected, one batch after the other;
a request is answered once every message up to its own is. When something is due and nobody writes, the driver submits a
tick: the wire that is due, which every reader derives by itself, so that only its time counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

import msgspec
import structlog

from redkey.commands.actor import Actor
from redkey.commands.draft import Draft, seal
from redkey.commands.due import due, next_time
from redkey.errors import RedKeyError
from redkey.ledger.content import body
from redkey.ledger.network import NetworkTopic
from redkey.ledger.ports import Clock, Content, SequencedStore, Unit
from redkey.ledger.record import Record
from redkey.reducers.parties import is_log
from redkey.reducers.world import World
from redkey.services.failures import Unavailable, store_failure
from redkey.services.ordered.messages import ProjectMessages, read_cursor
from redkey.services.ordered.projection import StructureMissing
from redkey.services.outcome import Outcome
from redkey.services.submission import Submission
from redkey.wire.validate import encode

# How often to look for messages without a reason to, after a message of our own, and after a failure.
POLL_SECONDS, OWN_SECONDS, AGAIN_SECONDS = 2.0, 0.25, 1.0
# A tick takes seconds to come back: no other is sent before.
TICK_SECONDS = 15.0
_log = structlog.get_logger("redkey.ordered")
_SERVER = Actor("", "", frozenset())
# The body with this hash, if another server has it; called in a thread.
Fetch = Callable[[str], bytes | None]
# What the log must say of itself on a local topic: who signs its checkpoints.
Facts = Callable[[str], Sequence[Draft]]


class WritePath(Protocol):
    """What the driver needs of the coordinator."""

    async def submit(self, topic: str, caller: Actor, command: ProjectMessages) -> Outcome: ...

    async def act(self, topic: str, work: Callable[[Unit], None]) -> None: ...

    def resume(self, submission: Submission) -> None: ...

    def peek(self, topic: str) -> World: ...


class OrderMeans(msgspec.Struct, frozen=True, kw_only=True):
    """What drivers work with. `fetch` asks other servers for bodies, `facts` what the log must say of itself."""

    path: WritePath
    store: SequencedStore
    clock: Clock
    threads: Executor
    fetch: Fetch
    facts: Facts
    poll_seconds: float = POLL_SECONDS
    own_seconds: float = OWN_SECONDS


class OrderedTopic:
    """One workspace whose order is a topic of a network; `topic` is its local one."""

    def __init__(self, topic: str, network: NetworkTopic, means: OrderMeans) -> None:
        self.topic, self.network, self._means = topic, network, means
        # Submitted requests by the last of their messages; the number keeps the order of those that share one.
        self._waiting: list[tuple[int, int, Submission]] = []
        self._numbers = count()
        self._under_way = 0
        self._said = False
        self._ticked_at = -TICK_SECONDS
        self._wake = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        # The structure that the projection waits for, and why the follower does not go on; empty if it does.
        self.waits_for = self.failure = ""

    def start(self) -> None:
        """Follow the topic from where the local one ends."""
        self._follower = asyncio.create_task(self._follow(), name=f"redkey-ordered-{self.topic}")

    async def stop(self) -> None:
        """End; requests that are not answered yet may be recorded: a retry with the same key tells."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        while self._waiting:
            heappop(self._waiting)[2].settle(Unavailable("The server stops; the request may be recorded. Retry it."))

    # To the network.

    def send(self, submission: Submission, outgoing: Sequence[tuple[str, bytes]]) -> None:
        """Submit the messages of a request, one after the other; it is answered once they are projected."""
        self._under_way += 1
        messages = [message for _, message in outgoing]
        sending = asyncio.get_running_loop().run_in_executor(self._means.threads, self._submit, messages)
        sending.add_done_callback(partial(self._submitted, submission))

    def _submit(self, messages: Sequence[bytes]) -> tuple[int, ...]:
        return tuple([self.network.submit(message) for message in messages])

    def _submitted(self, submission: Submission, sending: asyncio.Future[tuple[int, ...]]) -> None:
        self._under_way -= 1
        self._wake.set()
        cause = None if sending.cancelled() else sending.exception()
        if sending.cancelled() or cause is not None:
            failure = cause if isinstance(cause, RedKeyError) else store_failure(cause)
            _log.warning("a message was not submitted", topic=self.topic, code=failure.code, exc_info=cause)
            submission.settle(failure)
            return
        submission.sent = sending.result()
        heappush(self._waiting, (max(submission.sent), next(self._numbers), submission))
        self._release(read_cursor(self._means.store, self.topic).sequence)

    def tick(self) -> None:
        """Something may be due: if so, and if no tick is on its way, let the network show what time it is."""
        loop = asyncio.get_running_loop()
        if self._follower is None or loop.time() < self._ticked_at + TICK_SECONDS:
            return
        world, now = self._means.path.peek(self.topic), self._means.clock.wall()
        when = next_time(world)
        if not when or when > now or not is_log(world, self.network.payer):
            return
        drafts = due(world, max(now, world.timestamp + 1))
        if drafts:
            self._ticked_at = loop.time()
            message, _ = encode(seal(world, drafts[0], now, _NoIds()))
            loop.run_in_executor(self._means.threads, self._submit, [message]).add_done_callback(self._tick_ended)

    def _say_facts(self) -> None:
        """Submit what the log must say of itself, once; a second copy is void."""
        world = self._means.path.peek(self.topic)
        if self._said or not world.workspace.workspace_id or not is_log(world, self.network.payer):
            return
        self._said = True
        messages = [
            encode(seal(world, one, self._means.clock.wall(), _NoIds()))[0] for one in self._means.facts(self.topic)
        ]
        if messages:
            loop = asyncio.get_running_loop()
            loop.run_in_executor(self._means.threads, self._submit, messages).add_done_callback(self._tick_ended)

    def _tick_ended(self, sending: asyncio.Future[tuple[int, ...]]) -> None:
        self._wake.set()
        if not sending.cancelled() and sending.exception() is not None:
            self._said = False
            _log.warning("a message of the server was not submitted", topic=self.topic, reason=str(sending.exception()))

    # From the network.

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            try:
                head = read_cursor(self._means.store, self.topic)
                messages = await loop.run_in_executor(self._means.threads, self.network.read, head)
                if messages:
                    await self._project(tuple(messages))
                    continue
            except RedKeyError as cause:
                if cause.code != self.failure:
                    _log.warning(
                        "the topic cannot be followed", topic=self.topic, code=cause.code, reason=cause.message
                    )
                self.failure = cause.code
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            self.failure = ""
            self._say_facts()
            awaited = self._waiting or self._under_way
            await self._rest(self._means.own_seconds if awaited else self._means.poll_seconds)

    async def _project(self, messages: tuple[Record, ...]) -> None:
        try:
            await self._means.path.submit(self.topic, _SERVER, ProjectMessages(messages))
            self.waits_for = ""
        except StructureMissing as missing:
            self.waits_for = missing.sha256
            await self._get_structure(missing)
        finally:
            self._release(read_cursor(self._means.store, self.topic).sequence)

    async def _get_structure(self, missing: StructureMissing) -> None:
        """Ask other servers for the structure that the next message needs; raise that it is missing if none has it."""
        data = await asyncio.get_running_loop().run_in_executor(self._means.threads, self._means.fetch, missing.sha256)
        found = None if data is None else body(data)
        if found is None or found.sha256 != missing.sha256:
            raise missing
        pinned = Content(found.sha256, found.data, pinned=True)
        await self._means.path.act(self.topic, lambda unit: unit.put_content(self.topic, [pinned]))

    def _release(self, projected: int) -> None:
        """Answer the requests whose messages are all projected."""
        while self._waiting and self._waiting[0][0] <= projected:
            self._means.path.resume(heappop(self._waiting)[2])

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return


class _NoIds:
    """What is due, and what a log says of itself, has ids that follow from their causes."""

    def ulid(self) -> str:
        raise AssertionError("what is due draws no id")
