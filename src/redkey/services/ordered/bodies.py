"""Bodies of an ordered workspace that other organisations have: which are wanted, and how they are fetched.

A message names bodies by hash; the server that submitted it has them. The projection stores which ones are missing, in
the unit that folds the message, so that none is forgotten in a crash. The driver asks other servers for them and checks
each by its hash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from redkey.errors import RedKeyError
from redkey.ledger.content import body
from redkey.ledger.ports import Content, Reader, Row, Unit
from redkey.readmodel.rows import WANTED

if TYPE_CHECKING:
    from redkey.services.ordered.means import OrderMeans

_log = structlog.get_logger("redkey.ordered")
# The first and the longest pause after no server had a body.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
_PAGE = 500


def want_bodies(unit: Unit, topic: str, named: Sequence[str], erased: Collection[str]) -> None:
    """Store which of these bodies are missing here; erased ones are not wanted."""
    missing = [one for one in dict.fromkeys(named) if one not in erased and unit.content_facts(topic, one) is None]
    if missing:
        unit.put_rows(topic, [Row(WANTED, sha256, b"{}") for sha256 in missing])
    if erased:
        unit.delete_rows(topic, WANTED, erased)


def wanted_bodies(reader: Reader, topic: str) -> list[str]:
    """Return the hashes of wanted bodies, a page of them."""
    return [row.key for row in reader.rows(topic, WANTED, limit=_PAGE)]


def keep_body(unit: Unit, topic: str, sha256: str, data: bytes) -> None:
    """Store a body from another server, if it is still wanted."""
    if unit.row(topic, WANTED, sha256) is not None:
        unit.put_content(topic, [Content(sha256, data)])
        unit.delete_rows(topic, WANTED, [sha256])


class Patience:
    """When to ask again for bodies that no server had."""

    def __init__(self) -> None:
        self._pauses: dict[str, tuple[float, float]] = {}

    def due(self, wanted: Sequence[str], now: float) -> list[str]:
        """Return those that may be asked for now."""
        self._pauses = {name: pause for name, pause in self._pauses.items() if name in wanted}
        return [name for name in wanted if self._pauses.get(name, (0.0, 0.0))[0] <= now]

    def failed(self, name: str, now: float) -> None:
        """Ask later for a body that no server had, each time after a longer pause."""
        pause = min(LONGEST_PAUSE, 2 * self._pauses.get(name, (0.0, FIRST_PAUSE / 2))[1])
        self._pauses[name] = now + pause, pause


class BodyPost:
    """Fetches the bodies that an ordered workspace wants from other servers."""

    def __init__(self, topic: str, means: OrderMeans) -> None:
        self._topic, self._means = topic, means
        self._patience, self._lock = Patience(), asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """True while bodies are being fetched."""
        return self._lock.locked()

    async def fetch(self) -> None:
        """Ask other servers for the wanted bodies that are due."""
        loop, act, topic = asyncio.get_running_loop(), self._means.path.act, self._topic
        async with self._lock:
            try:
                for sha256 in self._patience.due(wanted_bodies(self._means.store, topic), loop.time()):
                    data = await loop.run_in_executor(self._means.threads, self._means.fetch, sha256)
                    if data is None or body(data).sha256 != sha256:
                        self._patience.failed(sha256, loop.time())
                    else:
                        await act(topic, partial(keep_body, topic=topic, sha256=sha256, data=data))
            except RedKeyError as cause:
                _log.warning("a body was not fetched", topic=topic, code=cause.code, reason=cause.message)
