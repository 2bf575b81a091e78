"""Presence: which agents are here. An agent is online while it is connected, or while it asks by HTTP now and then.

An agent that goes has a moment to come back before others are told that it is away, so that a reconnect is no news.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redkey.bus.limits import BusLimits

# A session's id and an agent's.
Key = tuple[str, str]


class Presence:
    """The clocks of agents that may be gone."""

    def __init__(self, limits: BusLimits, gone: Callable[[Key], None]) -> None:
        self._limits, self._gone = limits, gone
        self._clocks: dict[Key, asyncio.TimerHandle] = {}
        self._asking: set[Key] = set()

    def came(self, key: Key) -> None:
        """An agent is connected."""
        self.forget(key)

    def went(self, key: Key) -> None:
        """An agent's connection ended."""
        self._start(key, self._limits.away_seconds)

    def asked(self, key: Key) -> None:
        """An agent has asked something by HTTP."""
        self._start(key, self._limits.asking_seconds)
        self._asking.add(key)

    def is_asking(self, key: Key) -> bool:
        return key in self._asking

    def forget(self, key: Key) -> None:
        self._asking.discard(key)
        clock = self._clocks.pop(key, None)
        if clock is not None:
            clock.cancel()

    def stop(self) -> None:
        for clock in self._clocks.values():
            clock.cancel()
        self._clocks.clear()

    def _start(self, key: Key, seconds: float) -> None:
        self.forget(key)
        self._clocks[key] = asyncio.get_running_loop().call_later(seconds, self._over, key)

    def _over(self, key: Key) -> None:
        self.forget(key)
        self._gone(key)
