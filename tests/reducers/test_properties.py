"""Properties of any sequence of valid wires: no crash, at most one holder, and final states stay final."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from redkey.reducers.machine import machine
from redkey.wire.a2a import A2ATask, project
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import catalogue
from redkey.wire.validate import validate
from tests.harness.replays import Replayed, replay, replay_stream
from tests.reducers.case import Builder

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
thorough = settings(max_examples=2000 if LONG else 150, deadline=None)

REASONS = {
    "attempt_exists",
    "attempt_ended",
    "context_changed",
    "project_exists",
    "phase_exists",
    "unknown_project",
    "unknown_phase",
    "project_completed",
    "phase_completed",
    "already_completed",
    "not_created",
    "terminal",
    "transition_refused",
    "claim_not_current",
    "missing_artifact",
    "duplicate_wire",
}
TASK_EVENTS = sorted(name for name, event in catalogue().items() if event.streams == ("task",))
# Chance alone rarely gets far: these come more often, so that long lives are tried too.
ADVANCING = ["task.created", "task.available", "task.claimed", "task.started", "artifact.ready", "task.lease_expired"]

Wire = dict[str, Any]


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(ADVANCING) | st.sampled_from(TASK_EVENTS) | st.sampled_from(sorted(catalogue())))
    event: dict[str, Any] = {
        "type": name,
        "task": draw(st.integers(1, 2)),
        "attempt": draw(st.sampled_from([1, 1, 2])),
        "context": draw(st.integers(1, 2)),
        "seq": draw(st.integers(1, 2**31 - 1)),
    }
    if draw(st.integers(0, 3)) == 0 and name not in ("task.claim_missed", "inbox.sent"):
        # The claim of another agent; without this key the wire names the last claim.
        event["claim"] = draw(st.integers(1, 4))
    event |= draw(st.fixed_dictionaries({}, optional=_OPTIONS.get(name, {})))
    return event


_OPTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "task.created": {"outputs": st.lists(st.sampled_from(["report", "data"]), unique=True)},
    "task.lease_extended": {"reacquired": st.booleans()},
    "task.failed": {
        "kind": st.sampled_from(["error", "rejected", "deadline", "lease_losses", "dependency_failed"]),
        "retry": st.booleans(),
    },
    "task.blocked": {"blocker_type": st.sampled_from(["spec_gap", "auth", "dependency"])},
    "artifact.ready": {
        "artifact": st.integers(1, 3),
        "name": st.sampled_from(["report", "data"]),
        "version": st.integers(1, 3),
        "readiness": st.sampled_from(["draft", "ready", "final"]),
    },
}


@st.composite
def sequences(draw: st.DrawFn) -> list[Wire]:
    """Valid wires of several streams, some repeated."""
    builder = Builder()
    wires: list[Wire] = []
    for event in draw(st.lists(events(), max_size=40)):
        if wires and draw(st.integers(0, 9)) == 0:
            wires.append(draw(st.sampled_from(wires)))
        wires.append(builder.wire(event))
    return wires


def subject(wire: Wire) -> str:
    """Return what a wire is about: a task with its attempts and gates, projects, or its own stream."""
    stream_id: str = wire["stream"]["stream_id"]
    kind = stream_id.partition(":")[0]
    if wire["type"].startswith("gate."):
        return f"task:{wire['payload']['task_id']}"
    return "projects" if kind in ("project", "phase") else stream_id.partition(":attempt:")[0]


def by_subject(wires: list[Wire]) -> dict[str, list[Wire]]:
    found: dict[str, list[Wire]] = {}
    for wire in wires:
        found.setdefault(subject(wire), []).append(wire)
    return found


def pictures(replayed: Replayed) -> dict[str, bytes]:
    return {stream_id: canonical(attempt.as_json()) for stream_id, attempt in replayed.attempts.items()}


@thorough
@given(sequences())
def test_no_wire_crashes_the_fold_and_a_void_one_changes_nothing(wires: list[Wire]) -> None:
    replayed = Replayed()
    for wire in wires:
        assert validate(wire) == []
        before = pictures(replayed)
        reason = replayed.apply(wire)
        assert reason is None or reason in REASONS
        if reason is not None:
            assert pictures(replayed) == before
    counts = replayed.as_json()["counts"]
    assert counts["wires"] == len(wires) == counts["applied"] + counts["void"] + counts["others"]


@thorough
@given(sequences())
def test_an_attempt_is_held_exactly_in_the_held_states_and_by_one_claim(wires: list[Wire]) -> None:
    replayed = Replayed()
    holders: dict[str, str] = {}
    for wire in wires:
        applied = replayed.apply(wire) is None
        for stream_id, attempt in replayed.attempts.items():
            assert (attempt.hold is not None) == (attempt.state in machine().held)
            assert attempt.blocker is None or attempt.state == "blocked"
            assert (attempt.outcome is not None) == attempt.terminal
            assert attempt.lease_losses >= 0
            holder = attempt.hold.claim_id if attempt.hold is not None else ""
            if holders.get(stream_id) and holder and holder != holders[stream_id]:
                raise AssertionError("a hold went from one claim to another without ending")
            if not holders.get(stream_id) and holder:
                assert applied
                assert wire["type"] in ("task.claimed", "task.lease_extended")
            holders[stream_id] = holder


@thorough
@given(sequences())
def test_a_terminal_stream_is_immutable(wires: list[Wire]) -> None:
    replayed = Replayed()
    ended: dict[str, bytes] = {}
    for wire in wires:
        replayed.apply(wire)
        for stream_id, attempt in replayed.attempts.items():
            if attempt.terminal:
                assert ended.setdefault(stream_id, canonical(attempt.as_json())) == canonical(attempt.as_json())


@thorough
@given(sequences(), st.data())
def test_a_prefix_and_the_rest_are_the_whole(wires: list[Wire], data: st.DataObject) -> None:
    places = data.draw(st.integers(0, len(wires)))
    begun = replay(wires, places=places)
    assert canonical(begun.as_json()) == canonical(replay(wires[:places]).as_json())
    for wire in wires[places:]:
        begun.apply(wire)
    assert canonical(begun.as_json()) == canonical(replay(wires).as_json())


@thorough
@given(sequences(), st.data())
def test_weaving_streams_otherwise_changes_no_stream(wires: list[Wire], data: st.DataObject) -> None:
    # What a workspace decides holds for all that comes after it, so its wires have no other order.
    wires = [wire for wire in wires if not wire["type"].startswith("workspace.")]
    subjects = {name: iter(own) for name, own in by_subject(wires).items()}
    order = data.draw(st.permutations([subject(wire) for wire in wires]))
    woven = replay(next(subjects[name]) for name in order)
    base = replay(wires)
    assert pictures(woven) == pictures(base)
    assert sorted(map(repr, woven.void)) == sorted(map(repr, base.void))
    assert canonical(woven.as_json()["projects"]) == canonical(base.as_json()["projects"])
    for own in by_subject(wires).values():
        streams = {wire["stream"]["stream_id"] for wire in own}
        expected = {key: value for key, value in pictures(base).items() if key in streams}
        assert pictures(replay(own)) == expected
        if len(streams) == 1:
            alone = replay_stream(wires, *streams)
            assert pictures(alone) == expected
            assert alone.wires == sum(wire["stream"]["stream_id"] in streams for wire in wires)


@thorough
@given(sequences())
def test_wires_that_went_through_json_replay_to_the_same_bytes(wires: list[Wire]) -> None:
    again = json.loads(json.dumps(wires))
    state = replay(wires).as_json()
    assert canonical(replay(again).as_json()) == canonical(state)
    assert json.loads(json.dumps(state)) == state


@thorough
@given(sequences())
def test_the_projection_never_goes_back_or_on_after_the_end(wires: list[Wire]) -> None:
    replayed = Replayed()
    tasks: dict[str, A2ATask | None] = {}
    for wire in wires:
        if replayed.apply(wire) is not None:
            continue
        subject = wire["stream"]["stream_id"].split(":")[1]
        before = tasks.get(subject)
        tasks[subject], sent = project(before, wire, lambda ref: None)
        after = tasks[subject]
        if before is not None and after is not None:
            assert not before.closed or (after, sent) == (before, [])
            assert before.state == after.state or after.state != "TASK_STATE_SUBMITTED"
        if before is None and sent:
            assert "task" in sent[0]
