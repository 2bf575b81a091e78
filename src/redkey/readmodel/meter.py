"""The meter: every recorded event is counted once, in the unit that records it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from redkey.reducers.world import SECOND, World

_DAY_NANOSECONDS = 86_400 * SECOND
_days: dict[int, str] = {}


def day_of(timestamp: int) -> str:
    """The UTC day of a ledger time, as `2026-05-07`."""
    number = timestamp // _DAY_NANOSECONDS
    found = _days.get(number)
    if found is None:
        found = _days[number] = f"{datetime.fromtimestamp(timestamp // SECOND, UTC):%Y-%m-%d}"
    return found


def meter(
    counts: Counter[str], world: World, wire: dict[str, Any], size: int, timestamp: int, void: str | None
) -> None:
    """Add one record to the counts: per day and type its events, bytes and credits; per day and agent its events."""
    day, event = day_of(timestamp), wire["type"]
    counts[f"type/{day}/{event}/events"] += 1
    counts[f"type/{day}/{event}/bytes"] += size
    if void is None and wire["sender"] != "system":
        counts[f"type/{day}/{event}/credits"] += world.workspace.prices.get(event, 1)
    agent_id = acting_agent(world, wire)
    if agent_id:
        counts[f"agent/{day}/{agent_id}/{event}"] += 1


def acting_agent(world: World, wire: dict[str, Any]) -> str:
    """The agent an event belongs to: the one whose stream it stands on, or whom its payload names."""
    stream_id: str = wire["stream"]["stream_id"]
    if stream_id.startswith("agent:"):
        return stream_id[6:]
    named: str = wire["payload"].get("agent_id", "")
    return named
