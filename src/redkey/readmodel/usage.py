"""Usage: what the meter counted, by day, by type or by agent."""

from __future__ import annotations

from collections import Counter
from typing import Any

from redkey.ledger.ports import Reader
from redkey.readmodel.meter import MEASURES, OUTCOMES
from redkey.shapes.usage import By, UsageFigures, UsageGroup, UsageReport


def usage_of(reader: Reader, topic: str, since: str, until: str, by: By) -> UsageReport:
    """Usage of the days from `since` up to and not including `until`; empty means no bound."""
    total: Counter[str] = Counter()
    groups: dict[str, Counter[str]] = {}
    for prefix in ("type/", "agent/") if by == "agent" else ("type/",):
        for name, amount in reader.counters(topic, prefix):
            _, day, key, measure = name.split("/", 3)
            if day < since or (until and day >= until):
                continue
            for counts in _counted(total, groups, prefix, day, key, by):
                counts[measure] += amount
                if prefix == "type/" and measure == "events" and key in OUTCOMES:
                    counts[OUTCOMES[key]] += amount
    field = "agent_id" if by == "agent" else by
    return UsageReport(
        by=by,
        total=UsageFigures(**_figures(total)),
        items=tuple(UsageGroup(**{field: name, **_figures(groups[name])}) for name in sorted(groups)),
    )


def _counted(
    total: Counter[str], groups: dict[str, Counter[str]], prefix: str, day: str, key: str, by: By
) -> list[Counter[str]]:
    """Where a counter belongs: types make up the total, and either days, types or agents are the groups."""
    if prefix == "agent/":
        return [groups.setdefault(key, Counter())]
    if by == "agent":
        return [total]
    return [total, groups.setdefault(day if by == "day" else key, Counter())]


def _figures(counts: Counter[str]) -> dict[str, Any]:
    return {measure: counts[measure] for measure in MEASURES}
