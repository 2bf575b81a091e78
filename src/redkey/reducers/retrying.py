"""When a failed task is retried: the pause before its next attempt, by the policy of the task or the workspace.

Every fold must compute the same time, so all numbers are integers, and the random part of the pause is computed from
the id of the wire that creates the attempt.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

_MILLISECOND = 1_000_000


class RetryDelay(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pause before another attempt: `delay_ms` after the first failure, multiplied by `backoff_percent` after each
    further failure, at most `longest_ms`, reduced by a random share of up to `jitter_percent`."""

    delay_ms: int = 0
    backoff_percent: int = 200
    jitter_percent: int = 0
    longest_ms: int = 3_600_000


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The retry policy of a workspace, for tasks that do not set their own."""

    max_attempts: int = 1
    delay: RetryDelay = RetryDelay()


def retry_delay(delay_seconds: float, backoff: float, jitter: float, longest_seconds: float) -> RetryDelay:
    """Convert a pause from seconds and factors to the integers of `RetryDelay`."""
    return RetryDelay(
        round(delay_seconds * 1000), round(backoff * 100), round(jitter * 100), round(longest_seconds * 1000)
    )


def pause_nanoseconds(delay: RetryDelay, failures: int, wire_id: str) -> int:
    """How long to wait after `failures` failures, before the attempt that this wire creates."""
    pause = delay.delay_ms
    for _ in range(failures - 1):
        if pause >= delay.longest_ms:
            break
        pause = pause * delay.backoff_percent // 100
    pause = min(pause, delay.longest_ms) * _MILLISECOND
    random = int.from_bytes(sha256(wire_id.encode()).digest()[:4], "big")
    return pause - pause * delay.jitter_percent * random // (100 * 2**32)
