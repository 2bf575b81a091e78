"""Usage: what the meter counted, by day, by type or by agent."""

from __future__ import annotations

from collections import Counter
from typing import Any

from redkey.ledger.ports import Reader
from redkey.readmodel.counted import counters_now
from redkey.readmodel.meter import MEASURES, OUTCOMES
from redkey.shapes.usage import By, UsageFigures, UsageGroup, UsageReport


def usage_of(reader: Reader, topic: str, since: str, until: str, by: By) -> UsageReport:
    """Usage of the days from `since` up to and not including `until`; empty means no bound."""
    total: Counter[str] = Counter()
    groups: dict[str, Counter[str]] = {}
    for name, amount in counters_now(reader, topic).items():
        kind, day, key, measure = name.split("/", 3)
        if day < since or (until and day >= until) or (kind == "agent" and by != "agent"):
            continue
        for counts in _counted(total, groups, kind, day, key, by):
            counts[measure] += amount
            if kind == "type" and measure == "events" and key in OUTCOMES:
                counts[OUTCOMES[key]] += amount
    field = "agent_id" if by == "agent" else by
    return UsageReport(
        by=by,
        total=UsageFigures(**_figures(total)),
        items=tuple(UsageGroup(**{field: name, **_figures(groups[name])}) for name in sorted(groups)),
    )


def _counted(
    total: Counter[str], groups: dict[str, Counter[str]], kind: str, day: str, key: str, by: By
) -> list[Counter[str]]:
    """Where a counter belongs: types make up the total, and either days, types or agents are the groups."""
    if kind == "agent":
        return [groups.setdefault(key, Counter())]
    if by == "agent":
        return [total]
    return [total, groups.setdefault(day if by == "day" else key, Counter())]


def _figures(counts: Counter[str]) -> dict[str, Any]:
    return {measure: counts[measure] for measure in MEASURES}
