"""Signup over HTTP: limited per address and in total, because its callers have no account."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.config import Rate
from redkey.config import Signup as SignupConfig
from redkey.http.limits import Buckets, source_of
from redkey.http.problems import Declined
from redkey.services.use_cases import signup as use_cases
from redkey.shapes.signup import NewSignup, SignedUp

_HOUR = 3600


class Signups:
    """Counts the new workspaces of one server."""

    def __init__(self, config: SignupConfig, now: Callable[[], float]) -> None:
        self._enabled = config.enabled
        self._by_address = _buckets(config.per_hour, now)
        self._all = _buckets(config.all_per_hour, now)

    def take(self, address: str) -> None:
        """Count a workspace; Declined when there were too many. The limit of an address comes before that of all."""
        if not self._enabled:
            return
        for buckets, name in ((self._by_address, source_of(address)), (self._all, "")):
            left = buckets.take(name)
            if left < 0:
                wait = buckets.wait_seconds(left)
                detail = f"Too many workspaces were created; wait {wait} s, or ask the operator for one."
                raise Declined(429, "signups_limited", detail, headers={"retry-after": str(wait)})


def _buckets(per_hour: int, now: Callable[[], float]) -> Buckets:
    return Buckets(Rate(per_second=per_hour / _HOUR, burst=per_hour), now)


def _sign_up(call: Call, new: NewSignup) -> Coroutine[Any, Any, SignedUp]:
    call.services.signups.take(call.exchange.connection.address)
    return use_cases.sign_up.run(call, new)


ROUTES = [bound(use_cases.sign_up, _sign_up)]
