"""When a failed task is tried again: the pause before its next attempt, by the policy of the task or the workspace.

Every fold must compute the same moment: numbers are whole, and the random part of the pause comes from the id of the
wire that creates the attempt.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

_MILLISECOND = 1_000_000


class RetryDelay(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pause before another attempt: `delay_ms` after the first failure, times `backoff_percent` for each one more,
    at most `longest_ms`, less a random share of up to `jitter_percent`."""

    delay_ms: int = 0
    backoff_percent: int = 200
    jitter_percent: int = 0
    longest_ms: int = 3_600_000


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How tasks of a workspace are retried that say nothing else."""

    max_attempts: int = 1
    delay: RetryDelay = RetryDelay()


def retry_delay(delay_seconds: float, backoff: float, jitter: float, longest_seconds: float) -> RetryDelay:
    """The pause as people state it, in seconds and shares, in whole numbers."""
    return RetryDelay(
        round(delay_seconds * 1000), round(backoff * 100), round(jitter * 100), round(longest_seconds * 1000)
    )


def pause_nanoseconds(delay: RetryDelay, failures: int, wire_id: str) -> int:
    """How long to wait after so many failures, before the attempt that this wire creates."""
    pause = delay.delay_ms
    for _ in range(failures - 1):
        if pause >= delay.longest_ms:
            break
        pause = pause * delay.backoff_percent // 100
    pause = min(pause, delay.longest_ms) * _MILLISECOND
    drawn = int.from_bytes(sha256(wire_id.encode()).digest()[:4], "big")
    return pause - pause * delay.jitter_percent * drawn // (100 * 2**32)
