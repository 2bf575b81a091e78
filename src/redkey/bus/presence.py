"""Presence: which agents are online, by their connections and their HTTP requests.

An agent that disconnects is reported as away only after a moment, so that a reconnect causes no event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redkey.bus.limits import BusLimits

# A session's id and an agent's.
Key = tuple[str, str]


class Presence:
    """The timers of agents that may have gone."""

    def __init__(self, limits: BusLimits, gone: Callable[[Key], None]) -> None:
        self._limits, self._gone = limits, gone
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._asking: set[Key] = set()

    def came(self, key: Key) -> None:
        """Stop the timer of an agent that connected."""
        self.forget(key)

    def went(self, key: Key) -> None:
        """Start the timer of an agent that disconnected."""
        self._start(key, self._limits.away_seconds)

    def asked_by_http(self, key: Key) -> None:
        """Start the timer of an agent that asked something by HTTP."""
        self._start(key, self._limits.asking_seconds)
        self._asking.add(key)

    def is_asking(self, key: Key) -> bool:
        """Whether an agent asked something by HTTP recently."""
        return key in self._asking

    def forget(self, key: Key) -> None:
        """Stop the timer of an agent."""
        self._asking.discard(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _start(self, key: Key, seconds: float) -> None:
        self.forget(key)
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._over, key)

    def _over(self, key: Key) -> None:
        self.forget(key)
        self._gone(key)
