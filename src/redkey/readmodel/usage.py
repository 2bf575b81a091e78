"""Usage: what the meter counted, by day, by type or by agent."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec

from redkey.ledger.ports import Reader
from redkey.readmodel.meter import MEASURES, OUTCOMES

By = Literal["day", "type", "agent"]


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """What was counted: recorded events, outcomes of claims, bytes on the ledger, credits."""

    events: int = 0
    claims: int = 0
    misses: int = 0
    rejected: int = 0
    bytes: int = 0
    credits: int = 0


class Usage(msgspec.Struct, frozen=True):
    """Figures by name, in the order of the names, and their sum over all types."""

    total: Figures
    groups: list[tuple[str, Figures]]


def usage_of(reader: Reader, topic: str, since: str, until: str, by: By) -> Usage:
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
    return Usage(_figures(total), [(name, _figures(groups[name])) for name in sorted(groups)])


def _counted(
    total: Counter[str], groups: dict[str, Counter[str]], prefix: str, day: str, key: str, by: By
) -> list[Counter[str]]:
    """Where a counter belongs: types make up the total, and either days, types or agents are the groups."""
    if prefix == "agent/":
        return [groups.setdefault(key, Counter())]
    if by == "agent":
        return [total]
    return [total, groups.setdefault(day if by == "day" else key, Counter())]


def _figures(counts: Counter[str]) -> Figures:
    return Figures(*(counts[measure] for measure in MEASURES))
