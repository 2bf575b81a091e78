"""Witnessing: sends the checkpoints that a server signs to its witnesses, and stores their cosignatures.

The protocol is C2SP tlog-witness, the same that `redkey witness` serves. All reachable witnesses get the same
checkpoint, and their lines are stored in one unit, so that a receipt carries them together. This runs beside the write
path: no request waits for a witness, cosignatures are stored in an act of the coordinator, and a witness that does not
answer is asked less and less often. A witness that has seen another history of this log is reported as an error, and
its memory is not overridden.

How a request is sent is `witness_post`; what a witness decides, `redkey.ledger.witness`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Protocol

import msgspec
import structlog

from redkey.errors import ProofRefused, RedKeyError, StorePoisoned, WitnessAway, WriterBusy
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint, parse_size
from redkey.ledger.cosignature import cosignatures
from redkey.ledger.note import VerifierKey
from redkey.ledger.ports import SequencedStore, Unit
from redkey.ledger.witness import Request
from redkey.services.outcome import Settled
from redkey.services.signing import WITNESSED, Signing

# The first and the longest pause after a failure of a witness.
_AGAIN_SECONDS, _AGAIN_AT_MOST = 1.0, 300.0
# How soon to retry if another process writes.
_BUSY_SECONDS = 0.05
_log = structlog.get_logger("redkey.witnessing")


class Answer(msgspec.Struct, frozen=True):
    """The response of a witness."""

    status: int
    body: bytes


class Post(Protocol):
    """Sends a request to a witness's address; WitnessAway if no response came."""

    async def __call__(self, url: str, body: bytes) -> Answer: ...

    async def close(self) -> None: ...


class Offer(msgspec.Struct, frozen=True):
    """The newest checkpoint of a topic, as witnesses get it."""

    topic: str
    size: int
    note: bytes


class Courier:
    """One witness as this log knows it: its address, what it has cosigned, when it may be asked again."""

    def __init__(self, url: str, key: VerifierKey, store: SequencedStore, post: Post) -> None:
        self.url, self.key = url, key
        self._store, self._post = store, post
        # By topic: the size that it has cosigned, and the size that it remembers, which may be larger.
        self._cosigned: dict[str, int] = {}
        self._remembers: dict[str, int] = {}
        self._pause = 0.0
        self.not_before = 0.0

    def lacks(self, offer: Offer) -> bool:
        """True if it has not cosigned the offer, as far as this process knows."""
        if offer.topic not in self._cosigned:
            self._cosigned[offer.topic] = self._remembers[offer.topic] = self._told(offer.topic)
        return self._cosigned[offer.topic] < offer.size

    async def bring(self, offer: Offer, threads: Executor) -> bytes:
        """Return its verified cosignature of the checkpoint; WitnessAway if it gives none."""
        for _ in range(2):
            old = self._remembers.get(offer.topic, 0)
            request = await asyncio.get_running_loop().run_in_executor(threads, self._request, offer, old)
            answer = await self._post(self.url, request)
            if answer.status == 200:
                self._check(offer, answer.body)
                self._cosigned[offer.topic] = self._remembers[offer.topic] = offer.size
                self._pause = 0.0
                return answer.body
            self._remembers[offer.topic] = _moved(answer, old, offer)
        raise WitnessAway("its memory changes during the request: another client sends it this log", code="size_moved")

    @property
    def is_away(self) -> bool:
        """True if it gave no cosignature when it was last asked."""
        return self._pause > 0

    async def close(self) -> None:
        await self._post.close()

    def rest(self, now: float, away: WitnessAway) -> None:
        """Pause requests to it, longer each time."""
        self._pause = _AGAIN_AT_MOST if away.for_long else min(_AGAIN_AT_MOST, max(_AGAIN_SECONDS, self._pause * 2))
        self.not_before = now + self._pause
        _log.log(
            logging.ERROR if away.for_long else logging.WARNING,
            "a witness gave no cosignature",
            witness=self.key.name,
            code=away.code,
            reason=away.message,
            again_in_seconds=self._pause,
        )

    def _request(self, offer: Offer, old: int) -> bytes:
        hashes = tuple(self._store.tree(offer.topic).consistency_proof(old, offer.size))
        return Request(old, hashes, *open_checkpoint(offer.note)).encode()

    def _check(self, offer: Offer, line: bytes) -> None:
        try:
            cosigned = cosignatures(open_checkpoint(offer.note)[1], line, [self.key])
        except ProofRefused as refused:
            raise WitnessAway(f"its answer cannot be read: {refused.message}", code="cosignature_wrong") from refused
        if not cosigned:
            raise WitnessAway("its answer is not its cosignature of this checkpoint", code="cosignature_wrong")

    def _told(self, topic: str) -> int:
        """Return the size that it has cosigned according to the store; it will report itself what it remembers."""
        kept = self._store.setting(WITNESSED + topic)
        if not kept:
            return 0
        checkpoint, note = open_checkpoint(kept.encode())
        named = {(line.name, line.key_id) for line in note.signatures}
        return checkpoint.size if (self.key.name, self.key.key_id) in named else 0


def _moved(answer: Answer, old: int, offer: Offer) -> int:
    """Return the size from which the witness wants the proof; WitnessAway if it wants something else."""
    text = answer.body[:200].decode(errors="replace").strip()
    if answer.status == 409:
        try:
            size = parse_size(text)
        except ProofRefused as refused:
            raise WitnessAway(f"it answered 409 with {text!r}", code="witness_refused") from refused
        if size > offer.size:
            said = f"it has cosigned {size} records, here are {offer.size}: this log lost its end, or has two histories"
            raise WitnessAway(said, code="split_view", for_long=True)
        if size != old:
            return size
        text = f"it has cosigned another tree of {size} records: this log has two histories"
        raise WitnessAway(text, code="split_view", for_long=True)
    if answer.status == 422:
        raise WitnessAway(f"this log has two histories for it: {text}", code="split_view", for_long=True)
    if answer.status in (403, 404):
        raise WitnessAway(f"it does not cosign for this log: {text}", code="witness_refused")
    raise WitnessAway(f"it answered {answer.status}: {text}", code="witness_refused")


class Witnessing:
    """Sends signed checkpoints to all witnesses, at most one round per interval, as long as something is new."""

    def __init__(
        self,
        store: SequencedStore,
        signing: Signing,
        act: Callable[[str, Callable[[Unit], Checkpoint]], Awaitable[Checkpoint]],
        threads: Executor,
        seconds: float,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self._store, self._signing, self._act, self._threads = store, signing, act, threads
        self._seconds, self._on_fatal = seconds, on_fatal
        self._couriers: list[Courier] = []
        # The topics to send; True while records wait for the signer.
        self._topics: dict[str, bool] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, courier: Courier) -> None:
        """Add a witness, before the start."""
        self._couriers.append(courier)

    @property
    def away(self) -> int:
        """Return how many witnesses gave no cosignature when they were last asked."""
        return sum(courier.is_away for courier in self._couriers)

    def start(self) -> None:
        """Start, if there are witnesses, with every topic."""
        if self._couriers:
            self._topics = dict.fromkeys(self._store.topics(), True)
            self._wake.set()
            self._task = asyncio.create_task(self._run(), name="redkey_witnessing")
            self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for courier in self._couriers:
            await courier.close()

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Schedule a topic with new records; a listener for the coordinator."""
        self._topics[topic] = True
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            # The signer comes first, and records of that time are included.
            await asyncio.sleep(self._seconds)
            for topic in list(self._topics):
                try:
                    await self._bring(topic)
                except StorePoisoned:
                    raise
                except RedKeyError as failure:
                    # The topic is retried with its next records.
                    self._topics.pop(topic, None)
                    _log.error("a topic is not witnessed", topic=topic, code=failure.code, reason=failure.message)
            self._wake_later()

    def _wake_later(self) -> None:
        """Wake again: at once if something is not signed yet, else when the first witness may be asked again."""
        loop = asyncio.get_running_loop()
        if any(self._topics.values()):
            self._wake.set()
        elif self._topics:
            again = min((one.not_before for one in self._couriers if one.is_away), default=loop.time())
            loop.call_at(again, self._wake.set)

    async def _bring(self, topic: str) -> None:
        """Send the newest checkpoint of a topic to all witnesses that have not cosigned it and may be asked."""
        offer = await asyncio.get_running_loop().run_in_executor(self._threads, self._offer, topic)
        if offer is None:
            # Nothing is signed yet; signing comes with new records.
            self._topics.pop(topic, None)
            return
        now = asyncio.get_running_loop().time()
        asked = [one for one in self._couriers if one.not_before <= now and one.lacks(offer)]
        lines = [line for line in await asyncio.gather(*(self._ask(one, offer) for one in asked)) if line]
        if lines:
            await self._keep(topic, b"".join(lines))
        self._topics[topic] = self._store.head(topic).sequence != offer.size
        if not self._topics[topic] and not any(one.lacks(offer) for one in self._couriers):
            del self._topics[topic]

    def _offer(self, topic: str) -> Offer | None:
        for size, note in self._store.checkpoints(topic, 1):
            return Offer(topic, size, note)
        return None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (cause := task.exception()) is not None:
            self._on_fatal(cause)

    async def _ask(self, courier: Courier, offer: Offer) -> bytes:
        try:
            return await courier.bring(offer, self._threads)
        except WitnessAway as away:
            courier.rest(asyncio.get_running_loop().time(), away)
            return b""

    async def _keep(self, topic: str, lines: bytes) -> None:
        """Store the lines, however long another process writes."""
        keys = [courier.key for courier in self._couriers]
        while True:
            try:
                await self._act(topic, lambda unit: self._signing.add_cosignatures(unit, topic, lines, keys))
            except WriterBusy:
                await asyncio.sleep(_BUSY_SECONDS)
            else:
                return
