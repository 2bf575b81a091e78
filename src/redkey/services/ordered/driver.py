"""The driver of one ordered workspace: submits requests to the network, and projects what is ordered there.

Requests are submitted in threads. A follower reads the topic and has its messages projected, batch after batch; a
request is answered once every message up to its own is projected. If something is due and there are no other writes,
the driver submits a tick: the wire that is due, which every reader derives by itself, so that only its time matters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

import structlog

from redkey.commands.actor import Actor
from redkey.commands.draft import Draft, seal
from redkey.commands.due import due, next_time
from redkey.errors import NetworkAway, RedKeyError
from redkey.ledger.content import body
from redkey.ledger.network import NetworkTopic
from redkey.ledger.ports import Content
from redkey.ledger.record import Record
from redkey.reducers.parties import is_log
from redkey.services.failures import Unavailable, store_failure
from redkey.services.ordered.bodies import BodyPost
from redkey.services.ordered.fees import FeeDesk, Treasury
from redkey.services.ordered.means import OrderMeans
from redkey.services.ordered.messages import ProjectMessages, read_cursor
from redkey.services.ordered.projection import NoIds, StructureMissing
from redkey.services.ordered.refusals import told
from redkey.services.outcome import Outgoing
from redkey.services.submission import Submission
from redkey.wire.validate import encode

# The pause after a failure.
AGAIN_SECONDS = 1.0
# How long replies wait for the text they show, while other servers are asked for it.
BODY_SECONDS = 2.0
# A tick takes seconds until it is read back: no other one is sent before.
TICK_SECONDS = 15.0
_log = structlog.get_logger("redkey.ordered")
_SERVER = Actor("", "", frozenset())


class OrderedTopic:
    """One workspace that a topic of a network orders; `topic` is its local one."""

    def __init__(self, topic: str, network: NetworkTopic, means: OrderMeans) -> None:
        self.topic, self.network, self._means = topic, network, means
        self.desk = FeeDesk(network, means.limits)
        self._treasury = Treasury(topic, network, self.desk, means)
        self._bodies = BodyPost(topic, means)
        # Submitted requests by the last of their messages; the number orders those with the same one.
        self._waiting: list[tuple[int, int, Submission]] = []
        self._numbers = count()
        self._under_way = 0
        # Up to which message everything is projected, as far as the follower has seen.
        self._projected = 0
        self._said = False
        # Messages of the server itself that are not ordered yet.
        self._own: set[asyncio.Task[None]] = set()
        self._ticked_at = -TICK_SECONDS
        self._wake = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._end_listening: Callable[[], None] = lambda: None
        # The structure that the projection waits for, and why the follower has stopped; empty if it runs.
        self.waits_for = self.failure = ""
        # Set once everything that the network showed at one time is projected.
        self.caught_up = asyncio.Event()

    def start(self) -> None:
        """Follow the topic from where the local one ends."""
        loop = asyncio.get_running_loop()

        def heard() -> None:
            with suppress(RuntimeError):  # The loop was closed.
                loop.call_soon_threadsafe(self._wake.set)

        self._end_listening = self.network.listen(heard)
        self._follower = asyncio.create_task(self._follow(), name=f"redkey-ordered-{self.topic}")

    @property
    def price_failure(self) -> str:
        """Return why no message can be paid now; empty if messages can."""
        return self._treasury.failure or ("network_budget_exhausted" if self.desk.is_over_budget else "")

    async def stop(self) -> None:
        """Stop. Requests that are not answered yet may be recorded: a retry with the same key gets the outcome."""
        ending = [*self._own, *([self._follower] if self._follower is not None else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await asyncio.to_thread(self._end_listening)
        while self._waiting:
            heappop(self._waiting)[2].settle(Unavailable("The server stops; the request may be recorded. Retry it."))

    # Submitting to the network.

    def send(self, submission: Submission, outgoing: Sequence[Outgoing]) -> None:
        """Submit the messages of a request, one after the other; it is answered once they are projected."""
        self._under_way += 1
        sending = asyncio.get_running_loop().run_in_executor(self._means.threads, self._submit, outgoing)
        sending.add_done_callback(partial(self._submitted, submission))

    def _submit(self, outgoing: Sequence[Outgoing]) -> tuple[int, ...]:
        sequences: list[int] = []
        for one in outgoing:
            try:
                sequences.append(self.network.submit(one.message, one.transaction_id))
            except RedKeyError as cause:
                if not sequences:
                    raise
                # The first message is ordered already: a retry with the same key gets the outcome.
                raise NetworkAway(cause.message, code="submission_in_doubt") from cause
        return tuple(sequences)

    async def _submit_own(self, wires: Sequence[tuple[str, bytes]]) -> None:
        """Submit messages of the server itself; their fees are reserved like others."""
        sizes = [len(message) for _, message in wires]
        act = self._means.path.act
        names = await act(self.topic, lambda unit: self.desk.reserve(unit, self.topic, sizes))
        outgoing = [Outgoing(*wire, name) for wire, name in zip(wires, names, strict=True)]
        await asyncio.get_running_loop().run_in_executor(self._means.threads, self._submit, outgoing)

    def _submitted(self, submission: Submission, sending: asyncio.Future[tuple[int, ...]]) -> None:
        self._under_way -= 1
        self._wake.set()
        cause = None if sending.cancelled() else sending.exception()
        if sending.cancelled() or cause is not None:
            failure = cause if isinstance(cause, RedKeyError) else store_failure(cause)
            _log.warning("a message was not submitted", topic=self.topic, code=failure.code, exc_info=cause)
            if failure.code == "balance_empty":
                self.desk.is_poor = True
            submission.settle(told(failure))
            return
        submission.has_its_place(sending.result())
        heappush(self._waiting, (max(submission.sent), next(self._numbers), submission))
        # A callback of the loop does not read the store, which may be across a network.
        self._release(self._projected)

    def tick(self) -> None:
        """Submit a tick if something may be due and no tick is pending."""
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
            self._send_own(drafts[:1])

    def _say_facts(self) -> None:
        """Submit what the log must record of itself, once; a second copy is void."""
        world = self._means.path.peek(self.topic)
        if self._said or not world.workspace.workspace_id or not is_log(world, self.network.payer):
            return
        self._said = True
        self._send_own(self._means.facts(self.topic))

    def _send_own(self, drafts: Sequence[Draft]) -> None:
        """Submit messages that no caller waits for: a tick, or a fact of the log."""
        if not drafts:
            return
        world, now = self._means.path.peek(self.topic), self._means.clock.wall()
        wires = [seal(world, draft, now, NoIds()) for draft in drafts]
        sending = asyncio.create_task(self._submit_own([(wire.wire_id, encode(wire)[0]) for wire in wires]))
        self._own.add(sending)
        sending.add_done_callback(self._own_ended)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that runs while the topic is read."""
        task = asyncio.create_task(work)
        self._own.add(task)
        task.add_done_callback(self._own.discard)
        return task

    def _own_ended(self, sending: asyncio.Task[None]) -> None:
        self._own.discard(sending)
        self._wake.set()
        cause = None if sending.cancelled() else sending.exception()
        if cause is not None:
            self._said = False
            _log.warning("a message of the server was not submitted", topic=self.topic, reason=str(cause))

    # Reading from the network.

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            try:
                await self._treasury.ask_prices()
                head = read_cursor(self._means.store, self.topic)
                messages = await loop.run_in_executor(self._means.readers, self.network.read, head)
                if messages:
                    await self._project(tuple(messages))
                    continue
                self.caught_up.set()
                # Another server of the same store may have projected it.
                self._release(read_cursor(self._means.store, self.topic).sequence)
                await self._treasury.book()
                if not self._bodies.is_busy:
                    self._begin(self._bodies.fetch())
                self._say_facts()
            except RedKeyError as cause:
                if cause.code != self.failure:
                    _log.warning(
                        "the topic cannot be followed", topic=self.topic, code=cause.code, reason=cause.message
                    )
                self.failure = cause.code
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            except Exception as cause:
                # A fault of RedKey must not end the reading for good.
                _log.error("the topic cannot be followed", topic=self.topic, exc_info=cause)
                self.failure = "internal_error"
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            self.failure = ""
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
            # A caller that wins a task reads its text next: fetch it first, if that does not take long.
            await asyncio.wait([self._begin(self._bodies.fetch())], timeout=BODY_SECONDS)
            self._release(read_cursor(self._means.store, self.topic).sequence)

    async def _get_structure(self, missing: StructureMissing) -> None:
        """Ask other servers for the structure that the next message needs; StructureMissing if none has it."""
        data = await asyncio.get_running_loop().run_in_executor(self._means.threads, self._means.fetch, missing.sha256)
        found = None if data is None else body(data)
        if found is None or found.sha256 != missing.sha256:
            raise missing
        pinned = Content(found.sha256, found.data, pinned=True)
        await self._means.path.act(self.topic, lambda unit: unit.put_content(self.topic, [pinned]))

    def _release(self, projected: int) -> None:
        """Answer the requests whose messages are all projected."""
        self._projected = projected
        while self._waiting and self._waiting[0][0] <= projected:
            self._means.path.resume(heappop(self._waiting)[2])

    async def _rest(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
