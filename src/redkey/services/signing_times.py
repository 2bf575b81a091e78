"""When checkpoints are signed: in the unit that passes a second or 1,024 records, and a second after the last one.

What is signed, and by which keys, is `signing`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import structlog

from redkey.errors import RedKeyError, StoreError, WriterBusy
from redkey.ledger.ports import Unit
from redkey.ledger.record import Head
from redkey.services.outcome import Settled
from redkey.services.signing import Signing

RECORDS = 1024
SECONDS = 1.0
# How soon to retry if another process writes.
_BUSY_SECONDS = 0.05
# How many topics' last checkpoints a process remembers.
_KNOWN = 10_000
_log = structlog.get_logger("redkey.services")


class _Last(msgspec.Struct, frozen=True, gc=False):
    """The last checkpoint of a topic that this process knows, and the time of the last record it covers."""

    size: int
    time: int


class SignsInUnits:
    """Lets the unit that passes a second or 1,024 records since the last checkpoint sign the next one."""

    def __init__(self, signing: Signing, *, seconds: float = SECONDS, records: int = RECORDS) -> None:
        self._signing, self._nanoseconds, self._records = signing, int(seconds * 1e9), records
        self._last: dict[str, _Last] = {}

    def __call__(self, unit: Unit, topic: str) -> None:
        """Sign at the end of a unit that has appended records, if it is time. The unit must not fail because of a
        signature.
        """
        head = unit.head(topic)
        if not self._is_time(self._last.get(topic), head):
            return
        # Another server may have signed since the last look.
        last = self._read(unit, topic)
        if self._is_time(last, head):
            try:
                self._signing.sign_along(unit, topic)
            except StoreError:
                raise
            except RedKeyError as failure:
                # The act that follows retries it, and reports it to operators.
                _log.warning("a unit could not sign", topic=topic, code=failure.code, reason=failure.message)
            last = _Last(head.sequence, head.timestamp)
        if len(self._last) >= _KNOWN:
            self._last.clear()
        self._last[topic] = last

    def _is_time(self, last: _Last | None, head: Head) -> bool:
        return (
            last is None
            or head.sequence - last.size >= self._records
            or head.timestamp - last.time >= self._nanoseconds
        )

    @staticmethod
    def _read(unit: Unit, topic: str) -> _Last:
        found = unit.checkpoints(topic, 1)
        size = found[0][0] if found else 0
        records = unit.read(topic, size - 1, 1) if size else ()
        return _Last(size, records[0].timestamp if records else 0)


class SigningSchedule:
    """Signs records of this process that no unit has signed within a second. It is idle while nothing is committed."""

    def __init__(
        self,
        signing: Signing,
        act: Callable[[str, Callable[[Unit], None]], Awaitable[None]],
        *,
        on_failure: Callable[[RedKeyError], None],
        seconds: float = SECONDS,
        records: int = RECORDS,
    ) -> None:
        """`act` runs work in a unit of its own: the coordinator's method."""
        self._signing, self._act, self._on_failure = signing, act, on_failure
        self._seconds, self._records = seconds, records
        self._uncovered: Counter[str] = Counter()
        # The first and the last record of each topic that wait for a signature; 0 if they are not known.
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._at_once = False
        # Set when enough records have come for the next checkpoint to be signed at once.
        self._everything = False
        # The signing that runs now; one at a time.
        self._signs: asyncio.Task[None] | None = None

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Schedule records that were committed; a listener for the coordinator."""
        self._uncovered[topic] += len(records)
        self._first.setdefault(topic, records[0].sequence if records else 0)
        self._last[topic] = records[-1].sequence if records else 0
        if self._uncovered[topic] >= self._records and not self._at_once:
            self._schedule(0)
        elif self._timer is None:
            self._schedule(self._seconds)

    async def stop(self) -> None:
        """Sign what is left, then stop."""
        if self._signs is not None:
            await self._signs
        if self._timer is not None:
            self._timer.cancel()
        await self._sign(everything=True)

    def _schedule(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at_once = seconds == 0
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._everything |= self._at_once
        self._timer, self._at_once = None, False
        if self._signs is None:
            everything, self._everything = self._everything, False
            self._signs = asyncio.ensure_future(self._sign(everything=everything))
            self._signs.add_done_callback(self._signed)

    def _signed(self, _: asyncio.Task[None]) -> None:
        self._signs = None
        if self._uncovered and self._timer is None:
            self._schedule(_BUSY_SECONDS)

    async def _sign(self, *, everything: bool) -> None:
        """Sign the topics whose first record has waited long enough; with `everything`, all that are not signed."""
        topics, self._uncovered = self._uncovered, Counter()
        first, self._first, last, self._last = self._first, {}, self._last, {}
        try:
            due = [topic for topic in topics if everything or not self._is_signed(topic, first[topic], last[topic])]
            behind = self._signing.behind(due)
            sign = self._signing.sign_in
            await asyncio.gather(*(self._act(topic, partial(sign, topic=topic)) for topic in behind))
        except WriterBusy:
            self._uncovered += topics
            self._first, self._last = first | self._first, last | self._last
        except RedKeyError as failure:
            self._on_failure(failure)

    def _is_signed(self, topic: str, first: int, last: int) -> bool:
        """True if a unit has signed the first waiting record; those after it then wait for their own second."""
        size = self._signing.signed_up_to(topic) if first else 0
        if size < first or not first:
            return False
        if last > size:
            self._uncovered[topic] += last - size
            self._first[topic] = size + 1
            self._last[topic] = max(last, self._last.get(topic, 0))
            if self._timer is None:
                self._schedule(self._seconds)
        return True
