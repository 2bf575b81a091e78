"""Retry calls to a model server that is busy or down for less than the lease.

The worker sends heartbeats while an executor waits, so the task stays held. An outage that is longer than the patience,
or a limit that ends at a known time, becomes `AgentUnavailable`: the runner releases the task and pauses.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from redkey.errors import AgentUnavailable

_log = logging.getLogger("redkey.runner")
_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 15.0
T = TypeVar("T")


class Busy(Exception):
    """The server cannot answer now; `after_seconds` is its Retry-After, `until` the end of a usage limit."""

    def __init__(self, message: str, *, after_seconds: float | None = None, until: float | None = None) -> None:
        super().__init__(message)
        self.message, self.after_seconds, self.until = message, after_seconds, until


async def patiently(call: Callable[[], Awaitable[T]], patience_seconds: float) -> T:
    """Repeat a call until it succeeds; AgentUnavailable if that takes longer than the patience."""
    begun, pause = time.monotonic(), _FIRST_SECONDS
    while True:
        try:
            return await call()
        except Busy as busy:
            left = begun + patience_seconds - time.monotonic()
            wanted = busy.after_seconds if busy.after_seconds is not None else pause * (0.75 + random.random() / 2)  # noqa: S311
            if busy.until is not None and busy.until - time.time() > left:
                raise AgentUnavailable(busy.message, code="usage_limit", until=busy.until) from busy
            if wanted > left:
                if busy.after_seconds is None:
                    raise AgentUnavailable(busy.message) from busy
                raise AgentUnavailable(busy.message, code="usage_limit", until=time.time() + wanted) from busy
            _log.warning("%s; trying again in %.1f seconds", busy.message, wanted)
            await asyncio.sleep(wanted)
            pause = min(pause * 2, _LONGEST_SECONDS)
