"""Failed logins: keys, tokens and client secrets that are wrong, bounded by where they come from and whose they claim
to be.

Failures alone are counted. A right key is let in however many wrong ones came before it, from the same address or for
the same client: secrets cannot be guessed at any rate, and a limit that locked their owners out would be a weapon for
anybody who can send a wrong one. What is bounded is what failures cost: their lines in the log, and the patience of
whoever sends them.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

import structlog

from redkey.api.metrics import Metrics
from redkey.config import Rate
from redkey.http.limits import Buckets
from redkey.http.problems import Declined
from redkey.services.keys import PUBLIC_ID

_log = structlog.get_logger("redkey.logins")
# Whoever has one address of IPv6 has all that share its first 64 bits.
_PREFIX_BITS = 64


class Logins:
    """Counts the failed logins of one server."""

    def __init__(self, rate: Rate, now: Callable[[], float], metrics: Metrics) -> None:
        self._buckets = Buckets(rate, now)
        self._refused = metrics.counter("logins_refused", "Failed logins.")
        self._limited = metrics.counter("logins_limited", "Failed logins beyond the limit.")

    def failed(self, address: str, client_id: str) -> None:
        """Note a failed login; Declined when there were too many from its address, or for its client.

        `client_id` is what the caller says, the public part of a key: it is told only when it has the shape of one.
        """
        client = client_id if PUBLIC_ID.fullmatch(client_id) else ""
        names = [f"address {_source(address)}", *([f"client {client}"] if client else [])]
        left = min(self._buckets.take(name) for name in names) if self._buckets.per_second else 0.0
        if left < 0:
            # Not in the log: that is what is bounded.
            self._limited.inc()
            wait = self._buckets.wait_seconds(left)
            detail = f"Too many logins failed from this address or for this client; wait {wait} s."
            raise Declined(429, "logins_limited", detail, headers={"retry-after": str(wait)})
        self._refused.inc()
        _log.warning("a login failed", address=address, client_id=client)


def _source(address: str) -> str:
    """What one caller can speak from, as far as an address tells."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Address(int(found) >> (128 - _PREFIX_BITS) << (128 - _PREFIX_BITS)))
    return str(found)
