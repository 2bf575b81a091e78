"""Compile and check the contract of the A2A projection, `a2a-task-state-map.json`.

For each wire it names the next A2A state and the object that subscribers get; `redkey.wire.a2a` applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from redkey.errors import ContractBroken
from redkey.wire.catalogue import catalogue, contract

FILE = "a2a-task-state-map.json"
Json = dict[str, Any]


class Rule(msgspec.Struct, frozen=True):
    """One rule of the contract: its conditions, the next state, and the object to send."""

    when: Mapping[str, Any]
    to: str
    object: str

    def holds(self, first: bool, payload: Mapping[str, Any]) -> bool:
        """Return whether the conditions hold for a wire; `first` is True for the first wire of a task."""
        for field, wanted in self.when.items():
            value = first if field == "first" else payload.get(field)
            if value not in wanted if isinstance(wanted, list) else value != wanted:
                return False
        return True


class Projection(msgspec.Struct, frozen=True):
    """The compiled contract."""

    states: frozenset[str]
    terminal: frozenset[str]
    interrupted: frozenset[str]
    rules: Mapping[str, tuple[Rule, ...]]


@cache
def projection() -> Projection:
    """Return the compiled contract of this version."""
    return compile_projection(contract(FILE))


_OBJECTS = ("task", "status", "status_if_changed", "artifact", "none")


def compile_projection(table: Any) -> Projection:
    """Compile the contract; raise ContractBroken for unknown names, or a rule that returns to the first state."""
    try:
        states = table["states"]
        rules = {event: tuple(_rule(row, states) for row in rows) for event, rows in table["events"].items()}
        _check(rules, table["interrupted"], states)
        terminal = frozenset(state for state, kind in states.items() if kind["terminal"])
        return Projection(frozenset(states), terminal, frozenset(table["interrupted"]), rules)
    except (KeyError, TypeError, AttributeError) as cause:
        raise ContractBroken(f"{FILE}: {type(cause).__name__}: {cause}") from cause


def _rule(row: Json, states: Json) -> Rule:
    if row["to"] not in states and row["to"] not in ("same", "resume"):
        raise ContractBroken(f"{FILE}: state {row['to']!r} is not known")
    if row["object"] not in _OBJECTS:
        raise ContractBroken(f"{FILE}: object {row['object']!r} is not known")
    return Rule(row.get("when", {}), row["to"], row["object"])


def _check(rules: Mapping[str, tuple[Rule, ...]], interrupted: list[str], states: Json) -> None:
    for event, listed in rules.items():
        if event not in catalogue():
            raise ContractBroken(f"{FILE}: event type {event!r} is not known")
        if not listed or listed[-1].when:
            raise ContractBroken(f"{FILE}: the last rule of {event} must have no condition")
    first = {rule.to for listed in rules.values() for rule in listed if rule.when.get("first")}
    for event, listed in rules.items():
        if any((rule.to in first or rule.object == "task") and not rule.when.get("first") for rule in listed):
            raise ContractBroken(f"{FILE}: {event} takes a task back to its first state")
    unknown = sorted({*interrupted, "TASK_STATE_WORKING"} - set(states))
    if unknown:
        raise ContractBroken(f"{FILE}: state {unknown[0]!r} is not known")
