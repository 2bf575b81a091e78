"""A request runs through a bounded number of functions: a step that is added to the hot path is noticed."""

from __future__ import annotations

from bench.stations import count

# What was counted when this was written, and a little room for what depends on timing (a timer that fires).
CALLS = {"create": 382, "claim": 394, "complete": 407}
ROOM = 12


def test_a_warm_request_takes_no_more_steps_than_it_did() -> None:
    found = {name: functions.total() for name, functions in count().items()}
    assert found.keys() == CALLS.keys()
    assert {name: calls for name, calls in found.items() if calls > CALLS[name] + ROOM} == {}
