"""Seed 001, Required Conformance Tests: every allowed transition is accepted, every other one is rejected.

The oracle below is written by hand from the table of states in the specification, not from the contract file
or the code: the three can disagree, and then a test fails. Every state is reached by a legal path first; then
every event type of the catalogue is tried on it, as the holder sends it, as a stranger does, and as the
system does where that makes a difference.
"""

from __future__ import annotations

from typing import Any

import pytest

from redkey.reducers.machine import machine
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import catalogue
from redkey.wire.ids import task_stream
from redkey.wire.validate import validate
from tests.harness.replays import Replayed, apply, replay
from tests.reducers.case import TASK, Builder

STREAM = task_stream(TASK, 1)
CLAIMED = ["task.created", "task.available", "task.claimed"]
WORKING = [*CLAIMED, "task.started"]

# How each state is reached; an available attempt whose lease expired remembers who had it and how far it was.
PATHS: dict[str, list[Any]] = {
    "none": [],
    "created": ["task.created"],
    "available": ["task.created", "task.available"],
    "available, expired as claimed": [*CLAIMED, "task.lease_expired"],
    "available, expired as working": [*WORKING, "task.lease_expired"],
    "claimed": CLAIMED,
    "working": WORKING,
    "blocked": [*WORKING, "task.blocked"],
    "completed": [*WORKING, "task.complete"],
    "failed": [*WORKING, "task.failed"],
    "cancelled": [*WORKING, "task.cancelled"],
}

# (from, wire, to), line by line as the specification has them; "same" moves nothing.
ORACLE = [
    ("none", "task.created", "created"),
    ("created", "task.available", "available"),
    ("available", "task.claimed", "claimed"),
    ("claimed", "task.started", "working"),
    ("claimed, working", "artifact.ready", "same"),
    ("claimed, working", "task.blocked", "blocked"),
    ("blocked", "task.unblocked", "available"),
    ("claimed, working", "task.released", "available"),
    ("claimed, working", "task.lease_expired", "available"),
    ("claimed, working", "task.stalled", "available"),
    ("claimed, working", "task.complete", "completed"),
    ("claimed, working", "task.failed", "failed"),
    ("created, available, claimed, working, blocked", "task.cancelled", "cancelled"),
    ("claimed, working", "task.lease_extended", "same"),
    ("claimed, working", "task.plan.created", "same"),
    ("claimed, working", "task.usage_reported", "same"),
    ("claimed, working", "task.progress", "same"),
    ("claimed, working", "review.concern", "same"),
    ("created, available, claimed, working, blocked", "message.added", "same"),
]
# What depends on more than state and type: a late holder, and failures that no holder reports.
REACQUIRED = {"available, expired as claimed": "claimed", "available, expired as working": "working"}
FAILED_BY_SYSTEM = {"created", "available", "claimed", "working", "blocked"}
# The wires that carry a claim: a late copy never hits the next holder.
FENCED = {
    "task.started",
    "task.released",
    "task.lease_extended",
    "task.lease_expired",
    "task.stalled",
    "task.blocked",
    "task.complete",
    "task.failed",
    "artifact.ready",
    "task.plan.created",
}

ALLOWED = {(state, event): to for row, event, to in ORACLE for state in row.split(", ")}
TASK_EVENTS = sorted(name for name, event in catalogue().items() if "task" in event.streams)
OTHER_EVENTS = sorted(set(catalogue()) - set(TASK_EVENTS))

every_state = pytest.mark.parametrize("place", PATHS)
every_task_event = pytest.mark.parametrize("event", TASK_EVENTS)


def state_of(place: str) -> str:
    return place.partition(",")[0]


def reach(place: str) -> tuple[Builder, Replayed]:
    builder = Builder()
    replayed = replay(builder.wires(PATHS[place]))
    assert replayed.void == []
    assert now(replayed) == state_of(place)
    return builder, replayed


def now(replayed: Replayed) -> str:
    attempt = replayed.attempts.get(STREAM)
    return attempt.state if attempt is not None else "none"


def picture(replayed: Replayed) -> bytes:
    """Everything but what is said about void and other wires."""
    state = replayed.as_json()
    return canonical([state["tasks"], state["artifacts"], state["projects"]])


def expect(replayed: Replayed, wire: dict[str, Any], to: str | None, before: str) -> None:
    """The wire moves the attempt to a state, or is void and changes nothing."""
    assert validate(wire) == []
    picture_before = picture(replayed)
    reason = replayed.apply(wire)
    if to is None:
        assert reason is not None, f"{wire['type']} was accepted in {before}"
        assert picture(replayed) == picture_before
        assert [void.wire_id for void in replayed.void] == [wire["wire_id"]]
    else:
        assert reason is None, f"{wire['type']} was refused in {before}: {reason}"
        assert now(replayed) == (before if to == "same" else to)


@every_state
@every_task_event
def test_every_allowed_transition_is_accepted_and_every_disallowed_one_rejected(place: str, event: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    expect(replayed, builder.wire(event), ALLOWED.get((state, event)), state)


@every_state
@pytest.mark.parametrize("event", sorted(FENCED))
def test_every_wire_of_a_holder_is_rejected_from_a_stranger(place: str, event: str) -> None:
    builder, replayed = reach(place)
    expect(replayed, builder.wire(event, claim=77), None, state_of(place))


@every_state
@pytest.mark.parametrize("event", sorted(FENCED))
def test_every_wire_of_an_earlier_holder_is_rejected(place: str, event: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    if state in ("claimed", "working"):
        for step in ("task.released", "task.claimed", "task.started")[: 2 if state == "claimed" else 3]:
            assert replayed.apply(builder.wire(step)) is None
    assert now(replayed) == state
    expect(replayed, builder.wire(event, claim=1 if state in ("claimed", "working") else 77), None, state)


@every_state
def test_only_the_last_holder_takes_an_expired_lease_up_again(place: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    to = REACQUIRED.get(place, ALLOWED.get((state, "task.lease_extended")))
    expect(replayed, builder.wire("task.lease_extended", reacquired=True), to, state)


@every_state
@pytest.mark.parametrize("kind", ["deadline", "lease_losses", "dependency_failed"])
def test_the_system_may_fail_every_attempt_that_is_not_over(place: str, kind: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    wire = builder.wire("task.failed", kind=kind, claim_id=None, agent_id=None)
    expect(replayed, wire, "failed" if state in FAILED_BY_SYSTEM else None, state)


@every_state
@pytest.mark.parametrize("kind", ["error", "timeout", "verification", "rejected"])
def test_a_failure_that_a_holder_reports_needs_its_hold(place: str, kind: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    expect(replayed, builder.wire("task.failed", kind=kind), ALLOWED.get((state, "task.failed")), state)


@every_state
@pytest.mark.parametrize("event", OTHER_EVENTS)
def test_wires_of_other_streams_move_no_attempt(place: str, event: str) -> None:
    builder, replayed = reach(place)
    before = picture(replayed)
    # A project or phase that was not created is void by its own stream.
    assert replayed.apply(builder.wire(event)) in (None, "unknown_project", "unknown_phase")
    assert picture(replayed) == before
    attempt = replayed.attempts.get(STREAM)
    if attempt is not None:
        # Even when such a wire were to stand on a task's stream, the machine does not know it there.
        assert apply(attempt, builder.wire(event)) is not None
        assert picture(replayed) == before


@pytest.mark.parametrize(
    ("place", "event"),
    [(place, event) for place in PATHS for event in TASK_EVENTS if (state_of(place), event) not in ALLOWED],
)
def test_the_reason_of_a_refusal_is_told_by_the_state(place: str, event: str) -> None:
    builder, replayed = reach(place)
    state = state_of(place)
    expected = {"none": "not_created", "completed": "terminal", "failed": "terminal", "cancelled": "terminal"}
    guarded = state == "available" and event == "task.lease_extended"
    assert replayed.apply(builder.wire(event)) == (
        "claim_not_current" if guarded else expected.get(state, "transition_refused")
    )


def test_the_contract_lists_exactly_what_the_oracle_allows() -> None:
    listed = {
        (state, event, to) for state, row in machine().moves.items() for event, found in row.items() for to, _ in found
    }
    expected = {(state, event, to) for (state, event), to in ALLOWED.items()}
    expected |= {("available", "task.lease_extended", "resume")}
    expected |= {(state, "task.failed", "failed") for state in FAILED_BY_SYSTEM}
    assert listed == expected


def test_the_contract_knows_exactly_the_states_of_the_oracle() -> None:
    assert set(machine().moves) == {state_of(place) for place in PATHS}
    assert machine().terminal == {"completed", "failed", "cancelled"}
    assert machine().held == {"claimed", "working"}
    assert machine().initial == "none"


def test_every_fenced_wire_has_a_guard_in_every_held_state() -> None:
    for state in machine().held:
        for event in FENCED - ({"task.started"} if state == "working" else set()):
            assert all(guard for _, guard in machine().moves[state][event]), (state, event)
