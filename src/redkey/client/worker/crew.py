"""The crew: all workers of one run, their threads, and how the run ends.

Each worker has as many slots as its concurrency; a slot is a thread that claims, handles and tells. A stop lets
handlers finish for a while, then gives back what is still held, so that nobody waits for a lease to expire.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

from redkey.client.calls.claims import Claims
from redkey.client.connection import Connection, SyncSender
from redkey.client.operation import Sync
from redkey.client.policy import Policy
from redkey.client.resources.agents import Agents
from redkey.client.worker.declared import Worker
from redkey.client.worker.enlist import Enlisted, enlist
from redkey.client.worker.hold import HandledClaim
from redkey.client.worker.lease import Lease
from redkey.client.worker.loop import HandlerLoop, ThreadedSender
from redkey.client.worker.outputs import share_out
from redkey.client.worker.race import RaceSource
from redkey.client.worker.slot import WAIT_SECONDS, NextSource, Slot, Source
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Done, Release
from redkey.errors import CallMisused, ClientError
from redkey.shapes.claims import Claimed, ClaimNext

_log = logging.getLogger("redkey.client.worker")
# An agent of which nothing is recorded for 180 seconds is taken for lost.
_PRESENCE_SECONDS = 60.0
_GIVEN_BACK_SECONDS = 1.0
_GIVING_BACK_SECONDS = 15.0
# How long handlers that were told to stop after the grace have to end.
_LAST_SECONDS = 2.0


class Crew:
    """One run of workers."""

    def __init__(
        self,
        workers: Sequence[Worker],
        connection: Connection,
        pulse_connection: Connection,
        policy: Policy,
        grace_seconds: float,
    ) -> None:
        if not workers:
            raise CallMisused("no worker is declared: put @rk.worker(queue=...) over a function", code="no_worker")
        self.tally = Tally()
        self._workers, self._grace_seconds = workers, grace_seconds
        self._sender, self._pulse_connection = SyncSender(connection, policy), pulse_connection
        # For what is polite and not vital: a server that does not answer must not hold up a stop.
        self._brief = SyncSender(connection, Policy(timeout_seconds=5.0, max_retries=1))
        self._stopping, self._hurry = threading.Event(), threading.Event()
        self._holds: set[HandledClaim] = set()
        self._lock = threading.Lock()
        self._races: list[RaceSource] = []
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        # To put something into it takes no lock that Python code could hold.
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._runner: int | None = None

    def run(self, loop: asyncio.AbstractEventLoop | None = None) -> Tally:
        """Work until a stop; the error that ended the run, if one did. Async handlers run on the loop that is given."""
        self._loop = HandlerLoop(loop)
        slots = sum(worker.concurrency for worker in self._workers)
        # For what async handlers ask of their contexts.
        self._asides = ThreadPoolExecutor(min(slots, 32), thread_name_prefix="redkey-context")
        enlisted: list[tuple[Worker, Enlisted]] = []
        self._runner = threading.get_ident()
        threading.Thread(target=self._obey, name="redkey-orders", daemon=True).start()
        try:
            for worker in self._workers:
                found = enlist(self._sender, worker.agent, worker.name, worker.queue, worker.roles)
                enlisted.append((worker, found))
                self._begin(worker, found.agent_id)
            while not self._stopping.is_set():
                self._show_presence(enlisted)
                self._stopping.wait(_PRESENCE_SECONDS)
        except BaseException:
            self._stopping.set()
            raise
        finally:
            self._end(enlisted)
        if self._error is not None:
            raise self._error
        return self.tally

    def stop(self, *, at_once: bool = False) -> None:
        """Claim nothing more and finish what is in hand, or give it back at once."""
        if threading.get_ident() == self._runner:
            # While this thread runs the crew, only the handler of a signal comes here.
            self._orders.put(partial(self._stop, at_once))
        else:
            self._stop(at_once)

    def heed(self, number: int) -> None:
        """A signal came: the first lets handlers finish, the next does not."""
        self._orders.put(partial(self._heard, number))

    def _obey(self) -> None:
        """Do what handlers of signals want done: they may have interrupted whoever holds a lock, and must take none."""
        while order := self._orders.get():
            order()

    def _heard(self, number: int) -> None:
        again = self._stopping.is_set()
        _log.info("%s: %s", signal.Signals(number).name, "giving back what is held" if again else "finishing")
        self._stop(again)

    def _stop(self, at_once: bool) -> None:
        if at_once:
            self._hurry.set()
        self._stopping.set()

    def _fail(self, error: BaseException) -> None:
        """The first error that no waiting cures ends the run."""
        with self._lock:
            self._error = self._error or error
        self._stopping.set()

    def _begin(self, worker: Worker, agent_id: str) -> None:
        source: Source
        if worker.claim == "race":
            race = RaceSource(self._sender, worker.queue, agent_id, worker.lease_seconds, self.tally)
            self._races.append(race)
            self._spawn(partial(race.follow, self._fail), f"redkey-race-{worker.name}")
            source = race
        else:
            source = NextSource(self._sender, worker.queue, agent_id, worker.lease_seconds, self._stopping, self.tally)
        for number in range(worker.concurrency):
            slot = Slot(source, partial(self._work, worker), self._give_back, self._stopping, self._fail, worker.pause)
            self._spawn(slot.run, f"redkey-{worker.name}-{number}")
        _log.info("%s works on %s as %s, %d at once", worker.name, worker.queue, agent_id, worker.concurrency)

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        # Daemons: a handler that does not end must not keep the process from ending.
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(
        self, worker: Worker, claimed: Claimed, asked_at: float, following: ClaimNext | None
    ) -> tuple[Claimed | None, float]:
        self.tally.count("claimed")
        lease = Lease(worker.lease_seconds, asked_at, claimed.lease_expires_at)
        patience = Policy(timeout_seconds=min(max(worker.lease_seconds / 3, 1.0), 10.0), max_retries=0)
        pulse_claims: Claims[Sync] = Claims(SyncSender(self._pulse_connection, patience))
        hold = HandledClaim(self._sender, pulse_claims, claimed, lease, self._stopping, self.tally)
        with self._lock:
            self._holds.add(hold)
        try:
            following_claim = hold.work(partial(self._handle, worker), following)
            if isinstance(hold.verdict, Release):
                # Others may have it first; a handler that always gives back must not spin.
                self._stopping.wait(_GIVEN_BACK_SECONDS)
            return following_claim
        except BaseException:
            hold.give_back(self._brief)
            raise
        finally:
            with self._lock:
                self._holds.discard(hold)

    def _handle(self, worker: Worker, hold: HandledClaim) -> Any:
        """What the handler gives, once the outputs that its task must have are made of it."""
        context = hold.context(self._sender)
        if worker.is_async:
            awaited = hold.context(ThreadedSender(self._sender, self._asides))
            given = self._loop.call(worker.handler, awaited, hold.lease)
            made = awaited.made
        else:
            given, made = worker.handler(context), context.made
            if inspect.iscoroutine(given):
                given.close()
                raise TypeError("the handler returned a coroutine: declare it with async def")
        output = given.output if isinstance(given, Done) else given
        named, rest = share_out(hold.task.outputs, made, output)
        for name, content in named.items():
            context.artifact(name, content)
        return replace(given, output=rest) if isinstance(given, Done) else rest

    def _give_back(self, claimed: Claimed) -> None:
        """A claim that came after the stop."""
        claims: Claims[Sync] = Claims(self._brief)
        try:
            claims.release(claimed.claim_id)
            self.tally.count("released")
        except ClientError as failure:
            _log.warning("%s could not be given back (%s)", claimed.task_id, failure.code)

    def _show_presence(self, enlisted: Sequence[tuple[Worker, Enlisted]]) -> None:
        """Tell of each agent that it lives, and how much work it can take and has; workers may share one."""
        agents: Agents[Sync] = Agents(self._brief)
        capacity: Counter[str] = Counter()
        for worker, found in enlisted:
            capacity[found.agent_id] += worker.concurrency
        with self._lock:
            busy = Counter(hold.claimed.agent_id for hold in self._holds)
        for agent_id, most in capacity.items():
            try:
                agents.heartbeat(agent_id, capacity=most, in_use=busy[agent_id])
            except ClientError as failure:
                _log.warning("%s could not be shown as alive (%s)", agent_id, failure.code)

    def _end(self, enlisted: Sequence[tuple[Worker, Enlisted]]) -> None:
        """Let slots finish, give back what is still held, and leave nothing open."""
        for race in self._races:
            race.stop()
        begun = time.monotonic()
        self._join(self._grace_seconds)
        self._give_back_all()
        self._hurry.clear()
        # A claim-next that waits may be about to win: it is heard to its end, and what it won is given back.
        self._join(max(_LAST_SECONDS, begun + WAIT_SECONDS + 1.0 - time.monotonic()))
        agents: Agents[Sync] = Agents(self._brief)
        for _, found in enlisted:
            if found.passing:
                try:
                    agents.deactivate(found.agent_id)
                except ClientError as failure:
                    _log.warning("%s could not be deactivated (%s)", found.agent_id, failure.code)
        self._orders.put(None)
        self._asides.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def _give_back_all(self) -> None:
        """What handlers still hold. When the server does not answer, leases must do what words cannot."""
        deadline = time.monotonic() + _GIVING_BACK_SECONDS
        with self._lock:
            held = list(self._holds)
        for hold in held:
            if time.monotonic() > deadline:
                _log.error("%s is left to its lease: the server does not answer", hold.task.task_id)
                continue
            _log.warning("%s is given back: its handler did not end in time", hold.task.task_id)
            hold.give_back(self._brief)

    def _join(self, seconds: float) -> None:
        """Wait for the threads to end, unless there is a hurry."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            while thread.is_alive() and not self._hurry.is_set() and (left := deadline - time.monotonic()) > 0:
                thread.join(min(left, 0.2))


@contextmanager
def stopped_by_signals(crew: Crew) -> Iterator[None]:
    """SIGTERM and SIGINT stop the run; they are as before afterwards. Only the main thread hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: Any) -> None:
        crew.heed(number)

    before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that was not set from Python, which Python cannot set again.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


async def run_beside(crew: Crew) -> Tally:
    """A run beside the event loop that its async handlers use.

    When the caller is cancelled, the run is stopped, and what it holds is given back before the caller goes on.
    """
    loop = asyncio.get_running_loop()
    with stopped_by_signals(crew):
        running = asyncio.ensure_future(asyncio.to_thread(crew.run, loop))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            crew.stop()
            await asyncio.wait([running])
            raise
