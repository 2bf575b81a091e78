"""The states of a task attempt and the moves between them, compiled from `task-state-machine.json`.

The contract is the only copy of the table. This module reads and checks it; the reducer decides what a move does:
`transitions` returns the moves with their guards by name, and `Machine.bind` replaces the names by the reducer's own
functions. A contract that names an unknown state, guard or event type raises ContractBroken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from redkey.errors import ContractBroken
from redkey.wire.catalogue import catalogue, contract

FILE = "task-state-machine.json"
# The target of a move that names no state: the same state, or the state before the lease expired.
SAME, RESUME = "same", "resume"
# Why a wire is void when no move is listed for it. These words are stable: receipts contain them.
NOT_CREATED, TERMINAL, TRANSITION_REFUSED = "not_created", "terminal", "transition_refused"

G = TypeVar("G")
Moves = Mapping[str, Mapping[str, tuple[tuple[str, G], ...]]]


class Machine(msgspec.Struct, frozen=True):
    """The compiled contract. `moves` is state -> event type -> (to, guard name); an empty name is no guard."""

    initial: str
    terminal: frozenset[str]
    held: frozenset[str]
    moves: Moves[str]
    refusals: Mapping[str, str]

    def bind(self, guards: Mapping[str, G]) -> Moves[G | None]:
        """The moves with the given functions in place of guard names; every guard name needs a function."""
        named = {guard for row in self.moves.values() for moves in row.values() for _, guard in moves if guard}
        _known("guard", named, guards)
        return {
            state: {event: tuple((to, guards.get(guard)) for to, guard in moves) for event, moves in row.items()}
            for state, row in self.moves.items()
        }


@cache
def machine() -> Machine:
    """The machine of Agent Wire 1.1."""
    return compile_machine(contract(FILE), catalogue())


def transitions(state: str, event: str) -> tuple[tuple[str, str], ...]:
    """The moves that the contract lists for a state and event type, as (to, guard name); empty if there is none."""
    return machine().moves[state].get(event, ())


def compile_machine(table: Mapping[str, Any], events: Collection[str]) -> Machine:
    """Compile a contract whose event types must be among `events`."""
    try:
        return _compile(table, events)
    except (KeyError, TypeError, AttributeError) as cause:
        raise ContractBroken(f"{FILE}: {type(cause).__name__}: {cause}") from cause


def _compile(table: Mapping[str, Any], events: Collection[str]) -> Machine:
    states, initial = table["states"], table["initial"]
    _known("state", {initial}, states)
    moves: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {state: {} for state in states}
    for row in table["transitions"]:
        event, to, guard = row["on"], row["to"], row.get("guard", "")
        _known("event type", {event}, events)
        _known("state", row["from"], states)
        _known("state", {to}, {SAME, RESUME, *states})
        _known("guard", {guard} - {""}, table["guards"])
        for state in row["from"]:
            if states[state]["terminal"]:
                raise ContractBroken(f"{FILE}: {event} leaves the terminal state {state!r}")
            moves[state][event] = (*moves[state].get(event, ()), (to, guard))
    return Machine(
        initial=initial,
        terminal=frozenset(state for state, kind in states.items() if kind["terminal"]),
        held=frozenset(state for state, kind in states.items() if kind["held"]),
        moves=moves,
        refusals={state: _refusal(state == initial, kind["terminal"]) for state, kind in states.items()},
    )


def _known(what: str, named: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(named) - set(known))
    if unknown:
        raise ContractBroken(f"{FILE}: {what} {unknown[0]!r} is not known")


def _refusal(initial: bool, terminal: bool) -> str:
    if initial:
        return NOT_CREATED
    return TERMINAL if terminal else TRANSITION_REFUSED
