"""The meter: every recorded event is counted once, behind the unit that records it (`services.counting`).

Counters are named `type/DAY/TYPE/MEASURE` and `agent/DAY/AGENT/MEASURE`, of costs also `model/DAY/MODEL/MEASURE` and
`task/DAY/TASK/MEASURE`. Requests cost what the price table in force at their place says, one credit by default;
derived and void records cost nothing. Dollars and tokens are what holders report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from redkey.reducers.spending import nano_usd
from redkey.reducers.world import SECOND
from redkey.wire.envelope import AnyWire
from redkey.wire.events import PAYLOADS, TaskUsageReported
from redkey.wire.ids import parse_stream

# The outcomes of claims, as usage shows them.
OUTCOMES = {"task.claimed": "claims", "task.claim_missed": "misses", "task.claim_rejected": "rejected"}
MEASURES = ("events", "claims", "misses", "rejected", "bytes", "credits")
COSTS = ("nano_usd", "input_tokens", "output_tokens")
# The model of costs that are reported without one.
UNNAMED = "unnamed"
_PLACES = {measure: place for place, measure in enumerate(MEASURES)}
_EVENTS, _BYTES, _CREDITS = _PLACES["events"], _PLACES["bytes"], _PLACES["credits"]
# The most records that are counted together: a long replay must not keep all its wires in memory.
_AT_ONCE = 1024
_DAY_NANOSECONDS = 86_400 * SECOND
_days: dict[int, str] = {}

_Tallies = dict[tuple[str, str], list[int]]


def day_of(timestamp: int) -> str:
    """The UTC day of a ledger time, as `2026-05-07`."""
    number = timestamp // _DAY_NANOSECONDS
    found = _days.get(number)
    if found is None:
        found = _days[number] = f"{datetime.fromtimestamp(timestamp // SECOND, UTC):%Y-%m-%d}"
    return found


class Meter:
    """Counts records by day and type, and by day and agent. They are noted one by one and counted many at once: that
    takes half the time. The counters are named when they are taken."""

    __slots__ = ("_agents", "_costs", "_noted", "_types")

    def __init__(self) -> None:
        # Wire, size, time and credits of what is not counted yet.
        self._noted: list[tuple[AnyWire, int, int, int]] = []
        # (day, type) and (day, agent) -> an amount for each of MEASURES.
        self._types: _Tallies = {}
        self._agents: _Tallies = {}
        # Counters of costs by their names: reports are few.
        self._costs: Counter[str] = Counter()

    def note(
        self, prices: Mapping[str, int], wire: AnyWire, size: int, timestamp: int, void: str | None = None
    ) -> None:
        """Count one record, at the prices in force at its place."""
        credits = prices.get(wire.type, 1) if void is None and wire.sender != "system" else 0
        self._noted.append((wire, size, timestamp, credits))
        if type(wire.payload) is TaskUsageReported and void is None:
            self._spend(wire, wire.payload, day_of(timestamp))
        if len(self._noted) == _AT_ONCE:
            self._count()

    def take(self) -> Counter[str]:
        """What was counted since this was last called, by the names of the counters."""
        self._count()
        counts: dict[str, int] = {}
        for kind, tallies in (("type", self._types), ("agent", self._agents)):
            for (day, key), tally in tallies.items():
                name = f"{kind}/{day}/{key}/"
                for measure, amount in zip(MEASURES, tally, strict=True):
                    if amount:
                        counts[name + measure] = amount
        self._types, self._agents = {}, {}
        costs, self._costs = self._costs, Counter()
        return Counter(counts) + costs

    def _spend(self, wire: AnyWire, used: TaskUsageReported, day: str) -> None:
        task_id = parse_stream(wire.stream.stream_id).subject
        groups = {"type": wire.type, "agent": used.agent_id, "model": used.model or UNNAMED, "task": task_id}
        amounts = (nano_usd(used.cost_usd), used.input_tokens or 0, used.output_tokens or 0)
        for kind, key in groups.items():
            for measure, amount in zip(COSTS, amounts, strict=True):
                if key and amount:
                    self._costs[f"{kind}/{day}/{key}/{measure}"] += amount

    def _count(self) -> None:
        noted, self._noted = self._noted, []
        for wire, size, timestamp, credits in noted:
            day, event, agent_id = day_of(timestamp), wire.type, acting_agent(wire)
            _add(self._types, (day, event), size, credits)
            if agent_id:
                tally = _add(self._agents, (day, agent_id), size, credits)
                if event in OUTCOMES:
                    tally[_PLACES[OUTCOMES[event]]] += 1


def _add(tallies: _Tallies, key: tuple[str, str], size: int, credits: int) -> list[int]:
    """Count an event where it belongs."""
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = [0] * len(MEASURES)
    tally[_EVENTS] += 1
    tally[_BYTES] += size
    tally[_CREDITS] += credits
    return tally


def acting_agent(wire: AnyWire) -> str:
    """The agent an event belongs to: the agent of its stream, or of its payload."""
    stream_id = wire.stream.stream_id
    if stream_id.startswith("agent:"):
        return stream_id[6:]
    return (getattr(wire.payload, "agent_id", "") or "") if type(wire.payload) in _NAMING_AGENTS else ""


_NAMING_AGENTS = frozenset(kind for kind in PAYLOADS.values() if "agent_id" in kind.__struct_fields__)
