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


class Meter:
    """Counts records. What they have in common (day, type, agent) is counted together and named when it is taken."""

    __slots__ = ("_tallies",)

    def __init__(self) -> None:
        # (day, type, agent) -> events, bytes, credits.
        self._tallies: dict[tuple[str, str, str], list[int]] = {}

    def note(self, world: World, wire: dict[str, Any], size: int, timestamp: int, void: str | None) -> None:
        """Count one record."""
        event = wire["type"]
        key = day_of(timestamp), event, acting_agent(wire)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = [0, 0, 0]
        tally[0] += 1
        tally[1] += size
        if void is None and wire["sender"] != "system":
            tally[2] += world.workspace.prices.get(event, 1)

    def take(self) -> Counter[str]:
        """What was counted since this was last called, by the names of the counters."""
        tallies, self._tallies = self._tallies, {}
        counts: Counter[str] = Counter()
        for (day, event, agent_id), (events, size, credits) in tallies.items():
            names = [f"type/{day}/{event}/", *([f"agent/{day}/{agent_id}/"] if agent_id else [])]
            for name in names:
                counts[name + "events"] += events
                counts[name + "bytes"] += size
                if credits:
                    counts[name + "credits"] += credits
            if agent_id and event in OUTCOMES:
                counts[names[1] + OUTCOMES[event]] += events
        return counts


def acting_agent(wire: dict[str, Any]) -> str:
    """The agent an event belongs to: the one whose stream it stands on, or whom its payload names."""
    stream_id: str = wire["stream"]["stream_id"]
    if stream_id.startswith("agent:"):
        return stream_id[6:]
    named: str = wire["payload"].get("agent_id", "")
    return named
