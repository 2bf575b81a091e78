"""The meter: every recorded event is counted once, behind the unit that records it (`services.counting`).

Counters are named `type/DAY/TYPE/MEASURE` and `agent/DAY/AGENT/MEASURE`, of costs also `model/DAY/MODEL/MEASURE` and
`task/DAY/TASK/MEASURE`. Requests cost what the price table in force at their place says, one credit by default;
derived and void records cost nothing. Dollars and tokens are what holders report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

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
# The most sums that are kept: a long replay must not keep one for each agent, day and type of its history.
_AT_ONCE = 4096
_DAY_NANOSECONDS = 86_400 * SECOND

_Tallies = dict[tuple[int, str], list[int]]


@lru_cache(maxsize=64)
def _name(day: int) -> str:
    """A UTC day, counted from the epoch, as `2026-05-07`."""
    return f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}"


class Meter:
    """Counts records by day and type, and by day and agent. The counters are named when they are taken."""

    __slots__ = ("_agents", "_costs", "_sums", "_types")

    def __init__(self) -> None:
        # (day, type, agent) -> events, bytes, credits; added to the other two when there are many.
        self._sums: dict[tuple[int, str, str], list[int]] = {}
        # (day, type) and (day, agent) -> an amount for each of MEASURES.
        self._types: _Tallies = {}
        self._agents: _Tallies = {}
        # Counters of costs by their names: reports are few.
        self._costs: Counter[str] = Counter()

    def note(
        self, prices: Mapping[str, int], wire: AnyWire, size: int, timestamp: int, void: str | None = None
    ) -> None:
        """Count one record, at the prices in force at its place."""
        key = timestamp // _DAY_NANOSECONDS, wire.type, acting_agent(wire)
        sums = self._sums.get(key)
        if sums is None:
            if len(self._sums) == _AT_ONCE:
                self._add_up()
            sums = self._sums[key] = [0, 0, 0]
        sums[0] += 1
        sums[1] += size
        if void is None:
            if wire.sender != "system":
                sums[2] += prices.get(wire.type, 1)
            if type(wire.payload) is TaskUsageReported:
                self._spend(wire, wire.payload, _name(key[0]))

    def take(self) -> Counter[str]:
        """What was counted since this was last called, by the names of the counters."""
        self._add_up()
        counts: dict[str, int] = {}
        for kind, tallies in (("type", self._types), ("agent", self._agents)):
            for (day, key), tally in tallies.items():
                name = f"{kind}/{_name(day)}/{key}/"
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

    def _add_up(self) -> None:
        added, self._sums = self._sums, {}
        for (day, event, agent_id), sums in added.items():
            _add(self._types, (day, event), sums)
            if agent_id:
                tally = _add(self._agents, (day, agent_id), sums)
                if event in OUTCOMES:
                    tally[_PLACES[OUTCOMES[event]]] += sums[0]


def _add(tallies: _Tallies, key: tuple[int, str], sums: list[int]) -> list[int]:
    """Add events, bytes and credits to their tally."""
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = [0] * len(MEASURES)
    tally[_EVENTS] += sums[0]
    tally[_BYTES] += sums[1]
    tally[_CREDITS] += sums[2]
    return tally


def acting_agent(wire: AnyWire) -> str:
    """The agent an event belongs to: the agent of its stream, or of its payload."""
    stream_id = wire.stream.stream_id
    if stream_id.startswith("agent:"):
        return stream_id[6:]
    return (getattr(wire.payload, "agent_id", "") or "") if type(wire.payload) in _NAMING_AGENTS else ""


_NAMING_AGENTS = frozenset(kind for kind in PAYLOADS.values() if "agent_id" in kind.__struct_fields__)
