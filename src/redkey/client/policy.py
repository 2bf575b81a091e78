"""How calls are made: how long they may take, whether they are tried again, and after which pause."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from redkey.errors import ApiError, ClientError, Unreachable

CONNECT_SECONDS = 5.0
# Followers hear something every 15 seconds, so that a silent stream is a dead one after this long.
SILENCE_SECONDS = 45.0
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 8.0
# A server that asks for more than this is not waited for: the caller knows better what to do in the meantime.
_LONGEST_RETRY_AFTER_SECONDS = 60.0
# 500 too: the request carries its key, so that it is done once however often it is sent.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Policy:
    """`timeout_seconds` is how long one try may be silent; `max_retries` how many tries follow the first."""

    timeout_seconds: float = 30.0
    max_retries: int = 4
    # The key of the next writing call; drawn for each call when there is none.
    idempotency_key: str = ""
    chance: Callable[[], float] = random.random
    # The server and where its address and key come from, for messages.
    origin: str = ""

    def new_key(self) -> str:
        """The idempotency key of one call, for all its tries."""
        return self.idempotency_key or secrets.token_hex(16)

    def pause_seconds(self, tries: int, error: ClientError) -> float | None:
        """How long to wait before another try; None when there is none."""
        if tries > self.max_retries or not is_passing(error):
            return None
        asked = error.retry_after_seconds if isinstance(error, ApiError) else None
        if asked is None:
            return self.back_off_seconds(tries)
        if asked > _LONGEST_RETRY_AFTER_SECONDS:
            return None
        # All who were sent away together must not come back together.
        return asked + self.chance() * max(0.1, asked / 10)

    def back_off_seconds(self, tries: int) -> float:
        """Twice as long each time, half of it by chance."""
        longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(tries - 1, 16))
        return longest * (0.5 + self.chance() / 2)


def is_passing(error: ClientError) -> bool:
    """Whether the same request may well succeed later."""
    if isinstance(error, ApiError):
        return error.status in _PASSING
    return isinstance(error, Unreachable)
