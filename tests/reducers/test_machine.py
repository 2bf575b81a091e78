"""The compiled contract: its contents, and that a damaged one is refused with the name of the error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from redkey.errors import ContractBroken
from redkey.reducers.machine import FILE, compile_machine, machine, transitions
from redkey.wire.catalogue import catalogue, contract


def test_transitions_gives_the_moves_with_their_guards_by_name() -> None:
    assert transitions("available", "task.claimed") == (("claimed", ""),)
    assert transitions("available", "task.lease_extended") == (("resume", "last_holder"),)
    assert transitions("working", "artifact.ready") == (("same", "holder"),)
    assert transitions("completed", "task.created") == ()
    assert transitions("working", "agent.heartbeat") == ()


def test_several_rows_for_one_state_and_event_are_tried_in_the_order_of_the_contract() -> None:
    table = copy.deepcopy(contract(FILE))
    table["transitions"].append({"on": "task.claimed", "from": ["available"], "to": "same", "guard": "holder"})
    found = compile_machine(table, catalogue()).moves["available"]["task.claimed"]
    assert found == (("claimed", ""), ("same", "holder"))


def _unknown_from(table: dict[str, Any]) -> None:
    table["transitions"][3]["from"] = ["asleep"]


def _unknown_to(table: dict[str, Any]) -> None:
    table["transitions"][3]["to"] = "asleep"


def _unknown_initial(table: dict[str, Any]) -> None:
    table["initial"] = "asleep"


def _unknown_guard(table: dict[str, Any]) -> None:
    table["transitions"][3]["guard"] = "dreamer"


def _unknown_event(table: dict[str, Any]) -> None:
    table["transitions"][3]["on"] = "task.dreamt"


def _leaves_terminal(table: dict[str, Any]) -> None:
    table["transitions"][3]["from"] = ["completed"]


def _no_transitions(table: dict[str, Any]) -> None:
    del table["transitions"]


def _states_as_list(table: dict[str, Any]) -> None:
    table["states"] = list(table["states"])


def _row_without_on(table: dict[str, Any]) -> None:
    del table["transitions"][0]["on"]


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (_unknown_from, "state 'asleep'"),
        (_unknown_to, "state 'asleep'"),
        (_unknown_initial, "state 'asleep'"),
        (_unknown_guard, "guard 'dreamer'"),
        (_unknown_event, "event type 'task.dreamt'"),
        (_leaves_terminal, "terminal state 'completed'"),
        (_no_transitions, "'transitions'"),
        (_states_as_list, "TypeError"),
        (_row_without_on, "'on'"),
    ],
)
def test_a_damaged_contract_is_refused_by_name(damage: Callable[[dict[str, Any]], None], named: str) -> None:
    table = copy.deepcopy(contract(FILE))
    damage(table)
    with pytest.raises(ContractBroken, match=named) as refused:
        compile_machine(table, catalogue())
    assert FILE in refused.value.message
    assert refused.value.code == "contract_broken"


def test_a_guard_that_no_reducer_has_is_a_broken_contract() -> None:
    guards = {"holder": 1, "last_holder": 2, "by_system": 3, "holder_or_system": 4}
    with pytest.raises(ContractBroken, match="guard 'outputs_ready' is not known"):
        machine().bind(guards)
    bound = machine().bind({**guards, "outputs_ready": 5})
    assert bound["claimed"]["task.complete"] == (("completed", 5),)
    assert bound["available"]["task.claimed"] == (("claimed", None),)
