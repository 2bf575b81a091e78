"""Bounds on callers: the request rate of a key, and the connections of an address that has not shown a key.

Failed logins are bounded in `redkey.api.logins`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from redkey.config import Rate
from redkey.http.problems import Declined

# So many buckets are kept, those used last: nobody can fill the memory by making up names.
KEPT = 10_000


class Buckets:
    """A bucket of tokens for each name: `burst` at once, `per_second` in the long run."""

    def __init__(self, rate: Rate, now: Callable[[], float]) -> None:
        self.per_second, self.burst, self._now = rate.per_second, rate.burst, now
        # name -> tokens, and when they were counted; the one used longest ago first.
        self._kept: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, name: str) -> float:
        """Take one token: how many are left, below zero when there was none to take."""
        now = self._now()
        tokens, counted = self._kept.pop(name, (float(self.burst), now))
        tokens = min(self.burst, tokens + (now - counted) * self.per_second)
        left = tokens - 1
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = (left if left >= 0 else tokens), now
        return left

    def wait_seconds(self, left: float) -> int:
        """How long until there is a token again, when `take` found none."""
        return math.ceil(-left / self.per_second)


class Strangers:
    """Counts the connections of each address on which no valid key has been shown yet."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def add(self, address: str) -> int:
        """Count one more connection of an address; how many there are now."""
        count = self._count[address] = self._count.get(address, 0) + 1
        return count

    def remove(self, address: str) -> None:
        count = self._count[address] - 1
        if count:
            self._count[address] = count
        else:
            del self._count[address]


class Limiter:
    """Lets each key make `burst` requests at once and `per_second` in the long run."""

    def __init__(self, rate: Rate, now: Callable[[], float]) -> None:
        self._buckets = Buckets(rate, now)
        self.is_on = bool(rate.per_second)

    def take(self, key: str) -> list[tuple[bytes, bytes]]:
        """Count one request of a key; the headers that tell what is left, or Declined."""
        if not self.is_on:
            return []
        left = self._buckets.take(key)
        if left < 0:
            wait = self._buckets.wait_seconds(left)
            told = {name.decode(): value.decode() for name, value in self._told(left + 1)}
            headers = {"retry-after": str(wait)} | told
            raise Declined(429, "rate_limited", f"This key made too many requests; wait {wait} s.", headers=headers)
        return self._told(left)

    def _told(self, tokens: float) -> list[tuple[bytes, bytes]]:
        rate, burst = self._buckets.per_second, self._buckets.burst
        refill, window = math.ceil((burst - tokens) / rate), math.ceil(burst / rate)
        return [
            (b"ratelimit-policy", f'"key";q={burst};w={window}'.encode()),
            (b"ratelimit", f'"key";r={int(tokens)};t={refill}'.encode()),
        ]
