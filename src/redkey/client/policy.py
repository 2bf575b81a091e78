"""How calls are made: their timeout, whether they are retried, and the pause before a retry."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from redkey.errors import ApiError, ClientError, Unreachable

CONNECT_SECONDS = 5.0
# On a network-ordered workspace, a heartbeat that extends a lease takes 5 to 10 seconds.
BEAT_SECONDS = 15.0
# The server sends something to followers every 15 seconds, so a stream that is silent for this long is broken.
SILENCE_SECONDS = 45.0
# With the shortest random pauses, this number of retries takes 31 seconds: enough for a server to restart.
RETRIES = 12
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 8.0
# If a server asks for a longer pause, raise the error: the caller knows better what to do in the meantime.
_LONGEST_RETRY_AFTER_SECONDS = 60.0
# 500 is retried too: the request carries its idempotency key, so it takes effect once however often it is sent.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Policy:
    """`timeout_seconds` is the longest silence of one try; `max_retries` excludes the first try."""

    timeout_seconds: float = 30.0
    max_retries: int = RETRIES
    # The idempotency key of the next writing call; a random one for each call if there is none.
    idempotency_key: str = ""
    chance: Callable[[], float] = random.random
    # The server and the sources of its address and key, for messages.
    origin: str = ""

    def new_key(self) -> str:
        """Return the idempotency key of one call, for all its tries."""
        return self.idempotency_key or secrets.token_hex(16)

    def pause_seconds(self, tries: int, error: ClientError) -> float | None:
        """Return the pause before the next try; None if there is no next try."""
        if tries > self.max_retries or not is_passing(error):
            return None
        server_pause = error.retry_after_seconds if isinstance(error, ApiError) else None
        if server_pause is None:
            return self.back_off_seconds(tries)
        if server_pause > _LONGEST_RETRY_AFTER_SECONDS:
            return None
        # Clients that were refused together must not retry together.
        return server_pause + self.chance() * max(0.1, server_pause / 10)

    def back_off_seconds(self, tries: int) -> float:
        """Return an exponential back-off: twice as long each time, half of it random."""
        longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(tries - 1, 16))
        return longest * (0.5 + self.chance() / 2)


def is_passing(error: ClientError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ApiError):
        return error.status in _PASSING
    return isinstance(error, Unreachable)


def beat_policy(lease_seconds: float) -> Policy:
    """Return the timeout of a heartbeat: a third of the lease, up to what the slowest ledger needs."""
    return Policy(timeout_seconds=min(max(lease_seconds / 3, 1.0), BEAT_SECONDS), max_retries=0)
