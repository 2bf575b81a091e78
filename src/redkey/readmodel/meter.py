"""The meter: every recorded event is counted once, in the unit that records it.

Counters are named `type/DAY/TYPE/MEASURE` and `agent/DAY/AGENT/MEASURE`. Requests cost what the price table in force
at their place says, one credit where it says nothing; what the system derives and what is void costs nothing.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from redkey.reducers.world import SECOND, World

# The outcomes of claims, as usage tells them.
OUTCOMES = {"task.claimed": "claims", "task.claim_missed": "misses", "task.claim_rejected": "rejected"}
MEASURES = ("events", "claims", "misses", "rejected", "bytes", "credits")
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
    """Add one record to the counts: per day and type, and per day and agent."""
    day, event = day_of(timestamp), wire["type"]
    price = world.workspace.prices.get(event, 1) if void is None and wire["sender"] != "system" else 0
    _add(counts, f"type/{day}/{event}/", size, price)
    agent_id = acting_agent(wire)
    if agent_id:
        name = f"agent/{day}/{agent_id}/"
        _add(counts, name, size, price)
        outcome = OUTCOMES.get(event)
        if outcome is not None:
            counts[name + outcome] += 1


def _add(counts: Counter[str], name: str, size: int, price: int) -> None:
    counts[name + "events"] += 1
    counts[name + "bytes"] += size
    if price:
        counts[name + "credits"] += price


def acting_agent(wire: dict[str, Any]) -> str:
    """The agent an event belongs to: the one whose stream it stands on, or whom its payload names."""
    stream_id: str = wire["stream"]["stream_id"]
    if stream_id.startswith("agent:"):
        return stream_id[6:]
    named: str = wire["payload"].get("agent_id", "")
    return named
