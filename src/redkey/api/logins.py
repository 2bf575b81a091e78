"""Failed logins: wrong keys, tokens and client secrets, limited per address and per client id.

Only failures are counted. A valid key is accepted however many wrong ones came before it, from the same address or for
the same client: secrets cannot be guessed at any rate, and a limit that locked owners out would be a weapon for anyone
who can send wrong keys. The limit bounds what failures cost the server: their lines in the log, for example.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import structlog

from redkey.api.metrics import Metrics
from redkey.config import Rate
from redkey.http.problems import Declined
from redkey.services.buckets import Buckets, source_of
from redkey.services.keys import PUBLIC_ID

_log = structlog.get_logger("redkey.logins")
# How many messages with codes one sender may request, and one e-mail address gets, in an hour.
_MESSAGES = 10


class Logins:
    """Counts the failed logins of one server."""

    def __init__(
        self, rate: Rate, now: Callable[[], float], metrics: Metrics, servers: Callable[[], int] = lambda: 1
    ) -> None:
        self._buckets = Buckets(rate, now, servers)
        self._messages = Buckets(Rate(per_second=_MESSAGES / 3600, burst=_MESSAGES), now, servers)
        self._refused = metrics.counter("logins_refused", "Failed logins.")
        self._limited = metrics.counter("logins_limited", "Failed logins beyond the limit.")

    def code_requested(self, address: str, email: str) -> None:
        """Count a message with a code; Declined when there were too many for its e-mail address or its sender.

        Unknown addresses count in the same way, so that the limit does not reveal who is invited.
        """
        names = (f"from {source_of(address)}", f"to {sha256(email.strip().lower().encode()).hexdigest()}")
        left = min(self._messages.take(name) for name in names)
        if left < 0:
            wait = self._messages.wait_seconds(left)
            detail = f"Too many codes were sent; wait {wait} s."
            raise Declined(429, "codes_limited", detail, headers={"retry-after": str(wait)})

    def failed(self, address: str, client_id: str) -> None:
        """Count a failed login; Declined when there were too many from its address or for its client.

        `client_id` is what the caller sent as the public part of a key; it is used only if it has the right format.
        """
        client = client_id if PUBLIC_ID.fullmatch(client_id) else ""
        names = [f"address {source_of(address)}", *([f"client {client}"] if client else [])]
        left = min(self._buckets.take(name) for name in names) if self._buckets.per_second else 0.0
        if left < 0:
            # Not logged: the limit bounds the size of the log.
            self._limited.inc()
            wait = self._buckets.wait_seconds(left)
            detail = f"Too many logins failed from this address or for this client; wait {wait} s."
            raise Declined(429, "logins_limited", detail, headers={"retry-after": str(wait)})
        self._refused.inc()
        _log.warning("a login failed", address=address, client_id=client)
