"""A request runs through a bounded number of functions and modules: a step that is added to the hot path is noticed."""

from __future__ import annotations

from bench.stations import count

# What was counted when this was written (docs/decisions/0391), and a little room for what depends on timing, such as a
# timer that fires. If a feature adds a step, write the new figure and its reason there.
CALLS = {"create": 382, "claim": 394, "complete": 407}
ROOM = 12
MODULES = {"create": 85, "claim": 85, "complete": 91}
MODULES_ROOM = 3


def test_a_warm_request_takes_no_more_steps_than_it_did() -> None:
    counted = count()
    calls = {name: functions.total() for name, functions in counted.items()}
    modules = {name: len({code.co_filename for code in functions}) for name, functions in counted.items()}
    assert calls.keys() == CALLS.keys()
    assert {name: number for name, number in calls.items() if number > CALLS[name] + ROOM} == {}
    assert {name: number for name, number in modules.items() if number > MODULES[name] + MODULES_ROOM} == {}
