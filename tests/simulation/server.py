"""A simulated server: the real services over a store that shares a disk, may fail, and dies with its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from redkey.api.stream import frame
from redkey.commands.actor import Actor
from redkey.errors import StoreFull, WriterBusy
from redkey.ledger.checkpoint import log_name
from redkey.ledger.note import VerifierKey
from redkey.ledger.ports import Clock, Content, SequencedStore
from redkey.ledger.signer import Signer
from redkey.reducers.world import SECOND
from redkey.services.coordinator import Coordinator
from redkey.services.counting import Counting
from redkey.services.log_facts import open_log
from redkey.services.outcome import Outcome
from redkey.services.signing import Signing
from redkey.services.signing_times import SigningSchedule, SignsInUnits
from redkey.services.subscriptions import Subscriptions
from redkey.services.timers import Timers
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.memory.network import Network, NetworkStore, Weather
from redkey.wire.ids import ulid
from tests.harness.desk import START
from tests.simulation.faults import Faults
from tests.simulation.loop import SimLoop


class Crash(BaseException):
    """The process of a server ends here, whatever it was doing."""


class Gone(Exception):
    """The server died while it had the request."""


class Machine:
    """What processes that share a file share too: one machine has one wall clock, right or wrong."""

    def __init__(self) -> None:
        self.wall_offset = 0


class SimClock:
    """Time as one process sees it: its machine's wall clock may jump, its monotonic clock begins with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, machine: Machine) -> None:
        self._loop, self._machine = loop, machine
        self.booted = loop.time()

    def wall(self) -> int:
        return START + int(self._loop.time() * SECOND) + self._machine.wall_offset

    def monotonic(self) -> int:
        # Each is rounded by itself: how often it is asked must not decide what time it is.
        return int(self._loop.time() * SECOND) - int(self.booted * SECOND)


class SimIds:
    """Ids of the run's own randomness."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def ulid(self) -> str:
        return ulid(START // 1_000_000, self._random.randbytes(10))

    def nonce(self) -> bytes:
        return self._random.randbytes(16)


class SimStore(MemoryStore):
    """A memory store that is busy, full or dead as the faults have it."""

    def __init__(self, clock: SimClock, disk: MemoryDisk, faults: Faults, random: Random) -> None:
        super().__init__(clock, disk)
        self._faults, self._random = faults, random
        self._held = False

    def hold(self) -> None:
        super().hold()
        self._held = True

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[Any]:
        if self.unit is not None:
            # One of several units of a transaction.
            with super()._transaction(wait) as unit:
                yield unit
            return
        chance, faults = self._random.random, self._faults
        if not wait and not self._held and chance() < faults.busy:
            raise WriterBusy
        self._held = False
        with super()._transaction(wait) as unit:
            yield unit
            if chance() < faults.commit_failed:
                raise StoreFull
            if chance() < faults.crash_before_commit:
                raise Crash(self)
        if chance() < faults.crash_after_commit:
            raise Crash(self)


class SimNetwork(Network):
    """A database across a network, in the time of the loop; it knows when each record was committed."""

    def __init__(self, machine: Machine, disk: MemoryDisk, weather: Weather, random: Random, loop: SimLoop) -> None:
        self._loop = loop
        self.moments: dict[str, dict[int, float]] = {}
        super().__init__(
            SimClock(loop, machine),
            random,
            disk,
            weather=weather,
            sleep=loop.sleep_in_thread,
            later=loop.call_later,
            now=loop.time,
        )

    def announce(self, topic: str, head: int, writer: NetworkStore) -> None:
        known = self.moments.setdefault(topic, {})
        known.update((sequence, self._loop.time()) for sequence in range(len(known) + 1, head + 1))
        super().announce(topic, head, writer)


class SimNetworkStore(NetworkStore):
    """One server's way to the database, which may be full, and whose server may die."""

    def __init__(self, network: SimNetwork, faults: Faults) -> None:
        super().__init__(network)
        self._faults, self._random = faults, network.random

    @contextmanager
    def write(self, topic: str, *, wait: bool = True) -> Iterator[Any]:
        chance, faults = self._random.random, self._faults
        with super().write(topic, wait=wait) as unit:
            yield unit
            if chance() < faults.commit_failed:
                raise StoreFull
            if chance() < faults.crash_before_commit:
                raise Crash(self)
        if chance() < faults.crash_after_commit:
            raise Crash(self)


class SimKeys:
    """The secret of a log, the same for all its servers."""

    def __init__(self, name: str) -> None:
        self._signer = Signer(name, Ed25519PrivateKey.from_private_bytes(bytes(32)))

    def signers(self, *, create: bool = True) -> list[Signer]:
        return [self._signer]

    def add(self) -> Signer:
        raise NotImplementedError

    def retire(self, key: VerifierKey) -> None:
        raise NotImplementedError


class Server:
    """One process. Booting it again gives it everything anew but the disk."""

    def __init__(
        self,
        machine: Machine,
        disk: MemoryDisk,
        faults: Faults,
        random: Random,
        network: SimNetwork | None = None,
        stores: Callable[[Clock], SequencedStore] | None = None,
    ) -> None:
        """`stores` opens the real store that is behind the network; without it, it is the memory store."""
        self._disk, self._faults, self._random, self._network = disk, faults, random, network
        self._stores = stores
        self.clock = SimClock(asyncio.get_running_loop(), machine)
        self.ids = SimIds(random)
        self.up = False
        self.crashes = 0
        # When, in real time, each record of a topic became durable.
        self.moments: dict[str, dict[int, float]] = {}
        # In the order they came: a set of tasks has an order of its own in every process.
        self._handling: dict[asyncio.Task[Any], None] = {}

    def boot(self) -> None:
        self.clock.booted = asyncio.get_running_loop().time()
        self.store: Any
        if self._network is None:
            self.store = SimStore(self.clock, self._disk, self._faults, self._random)
        elif self._stores is not None:
            from tests.simulation.far_store import FarStore

            self.store = FarStore(self._stores(self.clock), self._network, self._faults)
        else:
            self.store = SimNetworkStore(self._network, self._faults)
        signing = None if self._network is None else self._open_signing(self._network)
        sign = None if signing is None else SignsInUnits(signing)
        self.coordinator = Coordinator(self.store, self.ids, on_fatal=self._fatal, now=_no_time, sign=sign)
        self.subscriptions = Subscriptions(self.store, 100, frame)
        self.coordinator.listen(self.subscriptions.hear)
        self.coordinator.listen(self._heard)
        self.coordinator.listen(Counting(self.coordinator.join).heard)
        if signing is not None:
            schedule = SigningSchedule(signing, self.coordinator.join, on_failure=lambda failure: None)
            self.coordinator.listen(schedule.heard)
        self.timers = Timers(self.store, self.coordinator, self.subscriptions, self.clock, 30, self._fatal)
        self.timers.start()
        self.up = True

    def _open_signing(self, network: SimNetwork) -> Signing:
        """Begin to sign; on the loop nothing can wait, so for a moment nothing goes wrong."""
        storm, network.weather = network.weather, Weather()
        log = open_log(self.store, bytes(32))
        signing = Signing(self.store, SimKeys(log_name(log.log_id)))
        network.weather = storm
        return signing

    def crash(self) -> None:
        """Nothing of the process goes on; whoever waits for it hears nothing."""
        if not self.up:
            return
        self.up = False
        self.crashes += 1
        self.store.close()
        writers = self.coordinator._writers
        resolving = writers._resolving if writers is not None else ()
        for task in [*self._handling, *self.timers._tasks, *resolving]:
            task.cancel()
        self._handling.clear()

    async def handle(
        self, topic: str, caller: Actor, command: Any, contents: tuple[Content, ...], idem: str, body: str, wait: float
    ) -> Outcome:
        """A request has come in; what happens to it dies with the process."""
        task = asyncio.ensure_future(
            self.coordinator.submit(topic, caller, command, contents, idem=idem, body=body, wait_seconds=wait)
        )
        self._handling[task] = None
        life, caller_task = self.crashes, asyncio.current_task()
        try:
            return await task
        except asyncio.CancelledError:
            if self.crashes == life or (caller_task is not None and caller_task.cancelling()):
                raise
            raise Gone from None
        finally:
            self._handling.pop(task, None)

    def _heard(self, topic: str, records: Any) -> None:
        now = asyncio.get_running_loop().time()
        self.moments.setdefault(topic, {}).update((one.sequence, now) for one in records)

    def _fatal(self, cause: BaseException) -> None:
        if not isinstance(cause, Crash):
            raise cause
        self.crash()


def _no_time() -> float:
    """How long units really take must not decide what a seed gives."""
    return 0.0
