"""Convert between times on wires (UTC, up to nanoseconds) and whole nanoseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

NANOSECONDS = 1_000_000_000


def parse_time(text: str) -> int:
    """Parse a time that is valid by schema into nanoseconds."""
    whole, _, fraction = text[:-1].partition(".")
    return _parse_second(whole) * NANOSECONDS + int(fraction.ljust(9, "0") if fraction else 0)


# Times that are parsed together share few distinct seconds: now, and the ends of new leases.
@lru_cache(maxsize=256)
def _parse_second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def write_time(timestamp: int) -> str:
    """Write a time with all its nanoseconds, as `2026-05-06T16:00:01.123456789Z`."""
    seconds, fraction = divmod(timestamp, NANOSECONDS)
    return f"{_write_second(seconds)}.{fraction:09d}Z"


@lru_cache(maxsize=256)
def _write_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
