"""Limits for callers: the request rate of a key, and the connections of an address without a valid key.

Failed logins are limited in `redkey.api.logins`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from redkey.config import Rate
from redkey.http.problems import Declined
from redkey.services.buckets import Buckets, source_of


class Strangers:
    """Counts the connections of each source on which no valid key has been sent yet."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def add(self, address: str) -> int:
        """Count one more connection from an address; return the number of its source."""
        source = source_of(address)
        count = self._count[source] = self._count.get(source, 0) + 1
        return count

    def remove(self, address: str) -> None:
        source = source_of(address)
        count = self._count[source] - 1
        if count:
            self._count[source] = count
        else:
            del self._count[source]


class Limiter:
    """Limits each key to `burst` requests at once and `per_second` on average."""

    def __init__(self, rate: Rate, now: Callable[[], float], servers: Callable[[], int] = lambda: 1) -> None:
        self._buckets = Buckets(rate, now, servers)
        self.is_on = bool(rate.per_second)

    def take(self, key: str) -> list[tuple[bytes, bytes]]:
        """Count one request of a key; return the rate-limit headers, or raise Declined if the limit is exceeded."""
        if not self.is_on:
            return []
        left = self._buckets.take(key)
        if left < 0:
            wait = self._buckets.wait_seconds(left)
            shown = {name.decode(): value.decode() for name, value in self._headers(left + 1)}
            headers = {"retry-after": str(wait)} | shown
            raise Declined(429, "rate_limited", f"This key made too many requests; wait {wait} s.", headers=headers)
        return self._headers(left)

    def _headers(self, tokens: float) -> list[tuple[bytes, bytes]]:
        rate, burst = self._buckets.per_second, self._buckets.burst
        refill, window = math.ceil((burst - tokens) / rate), math.ceil(burst / rate)
        return [
            (b"ratelimit-policy", f'"key";q={burst};w={window}'.encode()),
            (b"ratelimit", f'"key";r={int(tokens)};t={refill}'.encode()),
        ]
