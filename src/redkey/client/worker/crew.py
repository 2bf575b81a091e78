"""The crew: all workers of one run, their threads, and how the run ends.

Each worker has as many slots as its concurrency; a slot is a thread that claims, handles and reports. After a stop,
handlers have some time to finish; then their claims are released, so other agents need not wait for the leases to
expire.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from redkey.client.worker.hold import HandledClaim
from redkey.client.worker.lease import Lease
from redkey.client.worker.log import WorkerLog, stopping
from redkey.client.worker.loop import HandlerLoop, ThreadedSender
from redkey.client.worker.member import Member, brief
from redkey.client.worker.outputs import share_out
from redkey.client.worker.own_key import Registrar
from redkey.client.worker.race import RaceSource
from redkey.client.worker.slot import WAIT_SECONDS, NextSource, Slot, Source
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Done, Release
from redkey.errors import CallMisused, ClientError
from redkey.shapes.claims import Claimed, ClaimNext

_log = logging.getLogger("redkey.client.worker")
# The server marks an agent as lost after 180 seconds without a recorded heartbeat.
_PRESENCE_SECONDS = 60.0
_GIVEN_BACK_SECONDS = 1.0
_GIVING_BACK_SECONDS = 15.0
# After the grace, handlers are asked to stop, and have this long to end.
_LAST_SECONDS = 2.0


class Crew:
    """One run of workers."""

    def __init__(
        self,
        workers: Sequence[Worker],
        connection: Connection,
        connect: Callable[[str], Connection],
        policy: Policy,
        grace_seconds: float,
    ) -> None:
        if not workers:
            raise CallMisused("no worker is declared: decorate a function with @rk.worker(queue=...)", code="no_worker")
        self.tally = Tally()
        self._workers, self._grace_seconds = workers, grace_seconds
        self._sender, self._connect = SyncSender(connection, policy), connect
        self._registrar = Registrar(self._sender, connect)
        self._members: list[Member] = []
        self._connections: dict[str, tuple[Connection, Connection]] = {}
        self._stopping, self._hurry = threading.Event(), threading.Event()
        self._holds: set[HandledClaim] = set()
        self._lock = threading.Lock()
        self._races: list[RaceSource] = []
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        # Python code can never hold a lock of this queue, so a signal handler can put something into it.
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._runner: int | None = None

    def run(self, loop: asyncio.AbstractEventLoop | None = None) -> Tally:
        """Work until a stop; raise the error that ended the run, if any. Async handlers run on the given loop."""
        self._loop = HandlerLoop(loop)
        slots = sum(worker.concurrency for worker in self._workers)
        # For the server calls of async handlers' contexts.
        self._asides = ThreadPoolExecutor(min(slots, 32), thread_name_prefix="redkey-context")
        self._runner = threading.get_ident()
        threading.Thread(target=self._obey, name="redkey-orders", daemon=True).start()
        try:
            for worker in self._workers:
                self._begin(self._join_member(worker))
            while not self._stopping.is_set():
                self._show_presence()
                self._stopping.wait(_PRESENCE_SECONDS)
        except BaseException:
            self._stopping.set()
            raise
        finally:
            self._end()
        if self._error is not None:
            raise self._error
        return self.tally

    def stop(self, *, at_once: bool = False) -> None:
        """Stop claiming, and let handlers finish or release their claims at once."""
        if threading.get_ident() == self._runner:
            # This thread is running the crew, so this call comes from a signal handler.
            self._orders.put(partial(self._stop, at_once))
        else:
            self._stop(at_once)

    def heed(self, number: int) -> None:
        """Handle a signal: the first lets handlers finish, the second does not."""
        self._orders.put(partial(self._heard, number))

    def _obey(self) -> None:
        """Do the work of signal handlers, which must not take a lock: the interrupted code may hold it."""
        while order := self._orders.get():
            order()

    def _heard(self, number: int) -> None:
        again = self._stopping.is_set()
        with self._lock:
            held = len(self._holds)
        stopping(held, interrupted=number == signal.SIGINT, again=again)
        self._stop(again)

    def _stop(self, at_once: bool) -> None:
        if at_once:
            self._hurry.set()
        self._stopping.set()

    def _fail(self, error: BaseException) -> None:
        """Record the first error that retries cannot solve; it ends the run."""
        with self._lock:
            self._error = self._error or error
        self._stopping.set()

    def _join_member(self, worker: Worker) -> Member:
        """Get the worker an agent, and connections that use the key of this agent."""
        acting = self._registrar.admit(worker)
        key = acting.own.api_key if acting.own is not None else ""
        if key not in self._connections:
            connection = self._sender.connection
            own = self._connect(key) if key else connection
            self._connections[key] = own, self._connect(key or connection.settings.api_key)
        own, pulse = self._connections[key]
        enlisted = acting.enlisted
        sender = SyncSender(own, self._sender.policy)
        member = Member(worker, enlisted.agent_id, sender, pulse, WorkerLog(enlisted.slug))
        self._members.append(member)
        return member

    def _begin(self, member: Member) -> None:
        source: Source
        worker = member.worker
        if worker.claim == "race":
            race = RaceSource(member, self.tally)
            self._races.append(race)
            self._spawn(partial(race.follow, self._fail), f"redkey-race-{worker.name}")
            source = race
        else:
            source = NextSource(member, self._stopping, self.tally)
        for number in range(worker.concurrency):
            give_back = partial(self._give_back, member)
            slot = Slot(source, partial(self._work, member), give_back, self._stopping, self._fail, worker.pause)
            self._spawn(slot.run, f"redkey-{worker.name}-{number}")
        member.log.waiting(worker.queue, worker.roles, worker.concurrency)

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        # Daemon threads: a handler that does not end must not keep the process alive.
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(
        self, member: Member, claimed: Claimed, asked_at: float, following: ClaimNext | None
    ) -> tuple[Claimed | None, float]:
        self.tally.count("claimed")
        worker = member.worker
        lease = Lease(worker.lease_seconds, asked_at, claimed.lease_expires_at)
        hold = HandledClaim(member, claimed, lease, self._stopping, self.tally)
        with self._lock:
            self._holds.add(hold)
        try:
            following_claim = hold.work(partial(self._handle, member), following)
            if isinstance(hold.verdict, Release):
                # Give other agents a chance first, so that a handler that always releases does not spin.
                self._stopping.wait(_GIVEN_BACK_SECONDS)
            return following_claim
        except BaseException:
            hold.give_back()
            raise
        finally:
            with self._lock:
                self._holds.discard(hold)

    def _handle(self, member: Member, hold: HandledClaim) -> Any:
        """Return the handler's result, after filling the task's required outputs from it."""
        worker, context = member.worker, hold.context(member.sender)
        if worker.is_async:
            awaited = hold.context(ThreadedSender(member.sender, self._asides))
            result = self._loop.call(worker.handler, awaited, hold.lease)
            recorded = awaited.made
        else:
            result, recorded = worker.handler(context), context.made
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("the handler returned a coroutine: declare it with async def")
        output = result.output if isinstance(result, Done) else result
        named, rest = share_out(hold.task.outputs, recorded, output)
        for name, content in named.items():
            context.artifact(name, content)
        return replace(result, output=rest) if isinstance(result, Done) else rest

    def _give_back(self, member: Member, claimed: Claimed) -> None:
        """Release a claim that came after the stop."""
        claims: Claims[Sync] = Claims(member.brief)
        try:
            claims.release(claimed.claim_id)
            self.tally.count("released")
        except ClientError as failure:
            _log.warning("%s could not be given back (%s)", claimed.task_id, failure.code)

    def _show_presence(self) -> None:
        """Send a heartbeat for each agent, with its capacity and load; workers may share an agent."""
        capacity: Counter[str] = Counter()
        for member in self._members:
            capacity[member.agent_id] += member.worker.concurrency
        senders = {member.agent_id: member.brief for member in self._members}
        with self._lock:
            busy = Counter(hold.claimed.agent_id for hold in self._holds)
        for agent_id, most in capacity.items():
            agents: Agents[Sync] = Agents(senders[agent_id])
            try:
                agents.heartbeat(agent_id, capacity=most, in_use=busy[agent_id])
            except ClientError as failure:
                _log.warning("%s could not be shown as alive (%s)", agent_id, failure.code)

    def _end(self) -> None:
        """Let slots finish, release the claims that are left, and close everything."""
        for race in self._races:
            race.stop()
        begun = time.monotonic()
        self._join(self._grace_seconds)
        self._give_back_all()
        self._hurry.clear()
        # A waiting claim-next may be about to win: wait for its answer, and release what it won.
        self._join(max(_LAST_SECONDS, begun + WAIT_SECONDS + 1.0 - time.monotonic()))
        self._registrar.end(brief(self._sender))
        self._orders.put(None)
        self._asides.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def _give_back_all(self) -> None:
        """Release the claims of running handlers. If the server does not answer, their leases expire."""
        deadline = time.monotonic() + _GIVING_BACK_SECONDS
        with self._lock:
            held = list(self._holds)
        for hold in held:
            if time.monotonic() > deadline:
                _log.error("%s is left to its lease: the server does not answer", hold.task.task_id)
                continue
            _log.warning("%s is released: its handler did not end in time", hold.task.task_id)
            hold.give_back()

    def _join(self, seconds: float) -> None:
        """Wait for the threads to end, unless the stop is immediate."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            while thread.is_alive() and not self._hurry.is_set() and (left := deadline - time.monotonic()) > 0:
                thread.join(min(left, 0.2))
