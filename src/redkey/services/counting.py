"""Counting: the meter follows the commits of a server and writes its counters once a second.

No decision depends on these counters, so no unit waits for them. They are stored with the place that they count up to
(`readmodel.counted`), in the same unit. Usually the records after that place were committed by this process and are in
memory. After a crash, or if others wrote too, they are read from the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from redkey.errors import RedKeyError, WriterBusy
from redkey.ledger.ports import Unit
from redkey.readmodel.counted import COUNTED_AT, count_records, counted_at, prices_at
from redkey.readmodel.meter import Meter
from redkey.services.outcome import Settled
from redkey.wire.events import CreditsPriced

SECONDS = 1.0
# The limit of records of a workspace in memory; and of records read from the ledger in one unit.
_AT_HAND = 65_536
_AT_ONCE = 2048
_log = structlog.get_logger("redkey.services")


class Counting:
    """Counts what a server records. Nothing runs while nothing is committed."""

    def __init__(self, act: Callable[[str, Callable[[Unit], bool]], Awaitable[bool]], seconds: float = SECONDS) -> None:
        """`act` runs work in a unit of its own: the coordinator's method."""
        self._act, self._seconds = act, seconds
        # topic -> records that are not counted yet, as far as they are in memory.
        self._heard: dict[str, list[Settled]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._counts: asyncio.Task[None] | None = None

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Take committed records; a listener for the coordinator. Without records, there may be some to read."""
        waiting = self._heard.setdefault(topic, [])
        if len(waiting) < _AT_HAND:
            waiting += records
        if self._timer is None and self._counts is None:
            self._schedule()

    async def stop(self) -> None:
        """Count what is left."""
        if self._timer is not None:
            self._timer.cancel()
        if self._counts is not None:
            await self._counts
        while self._heard and await self._flush():
            pass

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._counts = asyncio.ensure_future(self._flush_all())
        self._counts.add_done_callback(self._counted)

    def _counted(self, _: asyncio.Task[None]) -> None:
        self._counts = None
        if self._heard and self._timer is None:
            self._schedule()

    async def _flush_all(self) -> None:
        await self._flush()

    async def _flush(self) -> bool:
        """Count the pending records; False if the store is not available now: they are counted later, or after a
        restart.
        """
        heard, self._heard = self._heard, {}
        return all(await asyncio.gather(*(self._count(topic, records) for topic, records in heard.items())))

    async def _count(self, topic: str, records: list[Settled]) -> bool:
        taken = True
        try:
            finished = await self._act(topic, lambda unit: count_up(unit, topic, records))
        except WriterBusy:
            finished = taken = False
        except RedKeyError as failure:
            _log.error("records could not be counted", topic=topic, code=failure.code, reason=failure.message)
            # They are read from the ledger with the next commit.
            return False
        if not finished:
            # The records in memory no longer follow the counted place.
            self._heard.setdefault(topic, [])
        return taken


def count_up(unit: Unit, topic: str, records: list[Settled]) -> bool:
    """Advance the counters of a topic and their place; False if there is more to read.

    Under load other records are committed before this unit runs. They come with the next call, so counting only what
    is in memory is enough.
    """
    at, head = counted_at(unit, topic), unit.head(topic).sequence
    if at == head:
        return True
    # After a read of the ledger, the first records in memory may be counted already.
    records = [one for one in records if one.sequence > at]
    if _follow(records, at, head):
        reached, finished, meter = records[-1].sequence, True, Meter()
        prices = prices_at(unit, topic, reached, head)
        for one in records:
            meter.note(prices, one.event, one.size, one.timestamp, one.void)
        counts = meter.take()
    else:
        reached = min(head, at + _AT_ONCE)
        counts, finished = count_records(unit, topic, at, reached), reached == head
    unit.count(topic, [*counts.items(), (COUNTED_AT, reached - at)])
    return finished


def _follow(records: list[Settled], at: int, head: int) -> bool:
    """True if these are the next records after a place, without a gap, at one price."""
    return (
        bool(records)
        and records[0].sequence == at + 1
        and records[-1].sequence == at + len(records) <= head
        and not any(type(one.event.payload) is CreditsPriced for one in records)
    )
