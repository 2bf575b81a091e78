"""Anchoring: submits the checkpoints that a server signs to a public topic, and stores the mirror's proof of each.

Anchoring runs beside the write path: no request waits for it. One server of a data directory anchors at a time. Even if
two did, each checkpoint would be recorded once, because the transaction id is stored before the message is sent
(`anchors`). A checkpoint counts as anchored when the mirror shows its message with the right running hash.

How messages are sent is `redkey.hedera.anchor_post`; what an anchor is, `redkey.ledger.anchor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import structlog

from redkey.commands.decision import Refused
from redkey.errors import NetworkAway, NetworkRefused, RedKeyError, StoreError, StorePoisoned
from redkey.ledger.anchor import anchor_message
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.fees import Price
from redkey.ledger.network import is_projected
from redkey.ledger.ports import SequencedStore, Unit
from redkey.services.anchors import (
    Anchored,
    PendingAnchor,
    begin_anchor,
    finish_anchor,
    give_up_anchor,
    is_new,
    newest_anchor,
    pending_anchor,
)
from redkey.services.network_fees import FeeLimits
from redkey.services.outcome import Settled
from redkey.services.signing import WITNESSED

_log = structlog.get_logger("redkey.anchoring")
# The first and the longest pause after a failure, and the pause between two looks at a message that was sent.
_AGAIN_SECONDS, _AGAIN_AT_MOST = 1.0, 300.0

T = TypeVar("T")


class Found(msgspec.Struct, frozen=True):
    """The result of looking for a message. `rows` are the mirror's rows of the message and of the one before it."""

    state: Literal["recorded", "failed", "lost", "pending"]
    status: str = ""
    fee: Price | None = None
    rows: tuple[dict[str, Any], ...] = ()


class Post(Protocol):
    """Sends anchors to one public topic."""

    network: str

    def draw(self) -> str:
        """Return a new transaction id."""

    def price(self, message: bytes) -> Price:
        """Return what a message costs now; NetworkAway if the exchange rate is not known."""

    def check_balance(self, price: Price) -> None:
        """Raise Refused (402) if the account cannot pay; warn if little is left."""

    def submit(self, message: bytes, transaction_id: str) -> None:
        """Send a message; a repeat with the same id is recorded once. NetworkAway, NetworkRefused."""

    def find(self, message: bytes, transaction_id: str) -> Found:
        """Find out what became of a message; NetworkAway if that cannot be known now."""

    def close(self) -> None:
        """Close all connections."""


class Alone(Protocol):
    """A lock that one server holds at a time."""

    def take(self) -> bool: ...

    def release(self) -> None: ...


class Means(msgspec.Struct, frozen=True):
    """What anchoring needs from the server."""

    store: SequencedStore
    act: Callable[[str, Callable[[Unit], Any]], Awaitable[Any]]
    threads: Executor
    post: Post
    limits: FeeLimits
    seconds: float
    alone: Alone


class Anchoring:
    """Anchors every workspace with new records, each at most once per interval."""

    def __init__(self, means: Means, on_fatal: Callable[[BaseException], None]) -> None:
        self._means, self._on_fatal = means, on_fatal
        # By topic: when to look at it next, by the loop's clock. Topics without new records are not in it.
        self._due: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """The number of workspaces whose last attempt to anchor failed."""
        return len(self._pauses)

    def start(self) -> None:
        """Start; also continue with messages that an earlier process sent."""
        self._due = {topic: 0.0 for topic in self._means.store.topics() if not is_projected(topic)}
        self._wake.set()
        self._task = asyncio.create_task(self._run(), name="redkey_anchoring")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop; the next server finds the messages that are not confirmed yet."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._means.post.close)
        self._means.alone.release()

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Schedule a topic that has new records; a listener for the coordinator."""
        if topic not in self._due and not is_projected(topic):
            # Workspaces that a network orders are on a public topic already.
            self._due[topic] = max(asyncio.get_running_loop().time(), self._not_before.get(topic, 0.0))
            self._wake.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (cause := task.exception()) is not None:
            self._on_fatal(cause)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._is_alone():
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            now = loop.time()
            due = [topic for topic, at in self._due.items() if at <= now]
            await asyncio.gather(*(self._look(topic) for topic in due))
            self._wake.clear()
            until = min(self._due.values(), default=None)
            if until is not None:
                loop.call_at(max(until, loop.time() + 0.01), self._wake.set)
            await self._wake.wait()

    def _is_alone(self) -> bool:
        """Return whether this server is the one that anchors; no server is while the store cannot be reached."""
        try:
            return self._means.alone.take()
        except StoreError as failure:
            _log.warning("anchors wait for the store", code=failure.code)
            return False

    async def _look(self, topic: str) -> None:
        """Do the next step for one topic, and schedule the step after it."""
        loop = asyncio.get_running_loop()
        try:
            again = await self.step(topic)
        except StorePoisoned:
            raise
        except RedKeyError as failure:
            pause = min(_AGAIN_AT_MOST, max(_AGAIN_SECONDS, self._pauses.get(topic, 0) * 2))
            self._pauses[topic], self._due[topic] = pause, loop.time() + pause
            level = _log.warning if isinstance(failure, NetworkAway | StoreError) else _log.error
            level("a checkpoint is not anchored yet", topic=topic, code=failure.code, reason=failure.message)
            return
        self._pauses.pop(topic, None)
        if again is None:
            self._due.pop(topic, None)
            return
        self._due[topic] = loop.time() + again

    async def step(self, topic: str) -> float | None:
        """Do what can be done for a topic now. Return the seconds until the next step, None if nothing is left."""
        pending = pending_anchor(self._means.store, topic)
        if pending is not None:
            return await self._settle(topic, pending)
        loop, note = asyncio.get_running_loop(), self._newest(topic)
        anchored = newest_anchor(self._means.store, topic)
        if note is None or not is_new(open_checkpoint(note)[0], anchored):
            # Records that are not signed yet will be within seconds. The record of the last anchor alone needs no new
            # anchor.
            return _AGAIN_SECONDS if self._is_behind(topic, anchored) else None
        if (left := self._not_before.get(topic, 0.0) - loop.time()) > 0:
            return left
        post = self._means.post
        before = anchored.checkpoint if anchored is not None else None
        price = await self._in_thread(lambda: post.price(anchor_message(open_checkpoint(note)[0], before)))
        await self._in_thread(lambda: post.check_balance(price))
        begin = partial(begin_anchor, topic=topic, note=note, transaction_id=post.draw(), price=price)
        begun: PendingAnchor | None = await self._means.act(topic, lambda unit: begin(unit, limits=self._means.limits))
        return 0 if begun is None else await self._settle(topic, begun)

    async def _settle(self, topic: str, pending: PendingAnchor) -> float:
        """Send the pending message, again if necessary, and find out what became of it."""
        post, act, name = self._means.post, self._means.act, pending.transaction_id
        refusal: RedKeyError | None = None
        try:
            await self._in_thread(lambda: post.submit(pending.message, name))
        except (NetworkAway, NetworkRefused) as refused:
            # An earlier attempt may have been recorded although it failed here: only `find` can tell.
            refusal = refused
        found: Found = await self._in_thread(lambda: post.find(pending.message, name))
        if found.state == "recorded" and found.fee is not None and found.rows:
            fee, anchored = found.fee, Anchored(post.network, pending.note, found.rows)
            await act(topic, lambda unit: finish_anchor(unit, topic, name, fee, anchored))
            self._not_before[topic] = asyncio.get_running_loop().time() + self._means.seconds
            return self._means.seconds
        if found.state == "failed" and found.fee is not None:
            await act(topic, lambda unit: give_up_anchor(unit, topic, name, found.fee))
            raise NetworkRefused(f"the network recorded {name} as {found.status}", status=found.status)
        if found.state == "lost":
            # It was never recorded: the next step uses a new id.
            await act(topic, lambda unit: give_up_anchor(unit, topic, name, None))
        if refusal is not None:
            raise refusal
        return _AGAIN_SECONDS if found.state == "pending" else 0

    def _newest(self, topic: str) -> bytes | None:
        """Return the checkpoint to anchor: one with new cosignatures if there is one, else the newest."""
        store = self._means.store
        witnessed = store.setting(WITNESSED + topic)
        if witnessed and is_new(open_checkpoint(witnessed.encode())[0], newest_anchor(store, topic)):
            return witnessed.encode()
        found = store.checkpoints(topic, 1)
        return found[0][1] if found else None

    def _is_behind(self, topic: str, anchored: Anchored | None) -> bool:
        head = self._means.store.head(topic).sequence
        return anchored.unanchored(head) > 0 if anchored is not None else head > 0

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._means.threads, work)


def check_affordable(tinybars: int, price: Price, account: str) -> None:
    """Raise Refused (402) if a balance does not cover a price."""
    if tinybars < price.tinybars:
        text = f"The account {account} cannot pay the network's fee. Nothing was lost; put money on it and retry."
        raise Refused(402, "network_balance_empty", text)
