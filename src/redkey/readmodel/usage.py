"""Usage: what the meter counted, by day, type, agent, model or task."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from redkey.ledger.ports import Reader
from redkey.readmodel.counted import counters_now
from redkey.readmodel.meter import COSTS, MEASURES, OUTCOMES
from redkey.reducers.spending import NANO
from redkey.shapes.usage import TASKS_LIMIT, By, UsageFigures, UsageGroup, UsageReport

# The field that names a group.
_FIELDS: Final = {"day": "day", "type": "type", "agent": "agent_id", "model": "model", "task": "task_id"}


def usage_of(reader: Reader, topic: str, since: str, until: str, by: By) -> UsageReport:
    """Usage of the days from `since` up to and not including `until`; empty means no bound."""
    total: Counter[str] = Counter()
    groups: dict[str, Counter[str]] = {}
    kinds = ("type",) if by in ("day", "type") else ("type", by)
    for name, amount in counters_now(reader, topic, [f"{kind}/" for kind in kinds]).items():
        kind, day, rest = name.split("/", 2)
        # The name of a model may have slashes.
        key, _, measure = rest.rpartition("/")
        if day < since or (until and day >= until) or kind not in kinds:
            continue
        for counts in _counted(total, groups, kind, day, key, by):
            counts[measure] += amount
            if kind == "type" and measure == "events" and key in OUTCOMES:
                counts[OUTCOMES[key]] += amount
    names = sorted(groups)
    if by == "task":
        names = sorted(names, key=lambda name: -groups[name]["nano_usd"])[:TASKS_LIMIT]
    return UsageReport(
        by=by,
        total=UsageFigures(**_figures(total)),
        items=tuple(UsageGroup(**{_FIELDS[by]: name, **_figures(groups[name])}) for name in names),
    )


def _counted(
    total: Counter[str], groups: dict[str, Counter[str]], kind: str, day: str, key: str, by: By
) -> list[Counter[str]]:
    """Where a counter belongs: types make up the total, and days, types, agents, models or tasks are the groups."""
    if kind != "type":
        return [groups.setdefault(key, Counter())]
    if by not in ("day", "type"):
        return [total]
    return [total, groups.setdefault(day if by == "day" else key, Counter())]


def _figures(counts: Counter[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {measure: counts[measure] for measure in (*MEASURES, *COSTS[1:])}
    return {**figures, "cost_usd": counts["nano_usd"] / NANO}
