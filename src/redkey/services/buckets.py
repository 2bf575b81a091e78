"""Token buckets by name, and the names of those who call from somewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import IPv6Address

from redkey.config import Rate

# How many buckets are kept, the last used ones: invented names must not fill the memory.
KEPT = 10_000
# Everyone with an IPv6 address controls all addresses with the same first 64 bits.
_PREFIX_BITS = 64


class Buckets:
    """A token bucket for each name: it allows `burst` requests at once and `per_second` on average.

    Servers that share a store divide the rate equally.
    """

    def __init__(self, rate: Rate, now: Callable[[], float], servers: Callable[[], int] = lambda: 1) -> None:
        """Create empty buckets; `servers` returns how many servers share the rate."""
        self._rate, self._now, self._servers = rate, now, servers
        # name -> tokens, and when they were counted; the least recently used first.
        self._kept: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def per_second(self) -> float:
        """Requests per second that this server allows on average."""
        return self._rate.per_second / self._servers()

    @property
    def burst(self) -> int:
        """Requests that this server allows at once."""
        return max(1, self._rate.burst // self._servers())

    def take(self, name: str) -> float:
        """Take one token; return how many are left, below zero if there was none."""
        now = self._now()
        tokens, counted = self._kept.pop(name, (float(self.burst), now))
        tokens = min(self.burst, tokens + (now - counted) * self.per_second)
        left = tokens - 1
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = (left if left >= 0 else tokens), now
        return left

    def wait_seconds(self, left: float) -> int:
        """Return the seconds until the next token, after `take` found none."""
        return math.ceil(-left / self.per_second)


def source_of(address: str) -> str:
    """The addresses that one caller controls, as one name."""
    if ":" not in address:
        return address
    try:
        ip = IPv6Address(address)
    except ValueError:
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(IPv6Address(int(ip) >> (128 - _PREFIX_BITS) << (128 - _PREFIX_BITS)))
