"""Rate limits: a token bucket per key. Off until configured."""

from __future__ import annotations

import math
from collections.abc import Callable

from redkey.api.problem import Declined
from redkey.config import Rate

# Buckets of keys that were quiet long enough to be full again are forgotten when there are this many.
_KEPT = 10_000


class Limiter:
    """Lets each key make `burst` requests at once and `per_second` in the long run."""

    def __init__(self, rate: Rate, now: Callable[[], float]) -> None:
        self._rate, self._burst, self._now = rate.per_second, rate.burst, now
        # key -> tokens, and when they were counted.
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> list[tuple[bytes, bytes]]:
        """Count one request of a key; the headers that tell what is left, or Declined."""
        if not self._rate:
            return []
        now = self._now()
        tokens, counted = self._buckets.get(key, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - counted) * self._rate)
        if len(self._buckets) >= _KEPT:
            self._forget(now)
        if tokens < 1:
            self._buckets[key] = tokens, now
            wait = math.ceil((1 - tokens) / self._rate)
            headers = {"retry-after": str(wait)} | {name.decode(): value.decode() for name, value in self._told(tokens)}
            raise Declined(429, "rate_limited", f"This key made too many requests; wait {wait} s.", headers=headers)
        self._buckets[key] = tokens - 1, now
        return self._told(tokens - 1)

    def _told(self, tokens: float) -> list[tuple[bytes, bytes]]:
        refill = math.ceil((self._burst - tokens) / self._rate)
        window = math.ceil(self._burst / self._rate)
        return [
            (b"ratelimit-policy", f'"key";q={self._burst};w={window}'.encode()),
            (b"ratelimit", f'"key";r={int(tokens)};t={refill}'.encode()),
        ]

    def _forget(self, now: float) -> None:
        full = self._burst / self._rate
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket[1] < full}
