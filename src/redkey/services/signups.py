"""How often signup may create workspaces: limited for each address and in total, because callers have no account."""

from __future__ import annotations

from collections.abc import Callable

from redkey.commands.decision import Refused
from redkey.config import Rate
from redkey.config import Signup as SignupConfig
from redkey.services.buckets import Buckets, source_of

_HOUR = 3600


class Signups:
    """Counts the new workspaces of one server."""

    def __init__(self, config: SignupConfig, now: Callable[[], float]) -> None:
        self._by_address = _buckets(config.per_hour, now)
        self._all = _buckets(config.all_per_hour, now)

    def take(self, address: str) -> None:
        """Count a workspace; Refused when there were too many. The limit of an address comes before that of all."""
        for buckets, name in ((self._by_address, source_of(address)), (self._all, "")):
            left = buckets.take(name)
            if left < 0:
                wait = buckets.wait_seconds(left)
                detail = f"Too many workspaces were created; wait {wait} s, or ask the operator for one."
                raise Refused(429, "signups_limited", detail, retry_seconds=wait)


def _buckets(per_hour: int, now: Callable[[], float]) -> Buckets:
    return Buckets(Rate(per_second=per_hour / _HOUR, burst=per_hour), now)
