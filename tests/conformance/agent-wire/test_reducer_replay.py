"""Seed 001, Required Conformance Tests: what the reducer must do, one test for each of its sentences."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.wire.canonical import canonical
from redkey.wire.ids import task_stream
from redkey.wire.validate import validate
from tests.harness.replays import Replayed, replay, replay_stream
from tests.reducers.case import CASES, TASK, Builder, load, mismatch, numbered, outcome

SEED_CASE = {
    "name": "happy path with one artifact",
    "events": [
        "task.created",
        "task.available",
        "task.claimed",
        "task.started",
        "artifact.ready",
        "task.complete",
    ],
    "expected": {
        "task_state": "completed",
        "terminal": True,
        "artifact_count": 1,
        "blocked": False,
        "verification": {"mechanical": "pass"},
    },
}
WORKING = ["task.created", "task.available", "task.claimed", "task.started"]


def task(replayed: Replayed) -> dict[str, Any]:
    return replayed.as_json()["tasks"][TASK]


def test_the_reducer_replays_ordered_wires_into_exact_task_state() -> None:
    wires = Builder().wires(SEED_CASE["events"])
    assert mismatch(SEED_CASE["expected"], outcome(replay(wires), wires)) == []


def test_the_case_of_the_seed_is_among_the_cases_word_for_word() -> None:
    assert SEED_CASE in [load(path) for path in CASES]


@pytest.mark.parametrize(
    ("places", "state"), list(enumerate(["created", "available", "claimed", "working", "working", "completed"], 1))
)
def test_the_reducer_knows_the_state_at_every_place(places: int, state: str) -> None:
    wires = Builder().wires(SEED_CASE["events"])
    assert task(replay(wires, places=places))["task_state"] == state


def test_a_consumer_rebuilds_one_stream_from_a_topic_of_many() -> None:
    builder = Builder()
    wires = [builder.wire(event, task=number) for event in SEED_CASE["events"] for number in (1, 2, 3)]
    alone = replay_stream(wires, task_stream(TASK, 1))
    assert list(alone.attempts) == [task_stream(TASK, 1)]
    assert canonical(task(alone)) == canonical(task(replay(wires)))
    assert task(replay_stream(wires, task_stream(TASK, 1), places=3))["task_state"] == "claimed"


def test_the_reducer_records_artifact_counts_and_ids_from_artifact_ready() -> None:
    builder = Builder()
    replayed = replay(builder.wires(WORKING))
    assert (task(replayed)["artifact_count"], task(replayed)["artifact_ids"]) == (0, [])
    for count in range(1, 9):
        replayed.apply(builder.wire("artifact.ready", name=f"output-{count}"))
        assert task(replayed)["artifact_count"] == count
        assert task(replayed)["artifact_ids"] == [numbered("art", number) for number in range(1, count + 1)]
    assert sorted(replayed.artifacts) == task(replayed)["artifact_ids"]


@pytest.mark.parametrize(
    ("made", "listed", "reason"),
    [
        (["report", "data"], [1, 2], None),
        (["report", "data"], [], "missing_artifact"),
        (["report", "data", "extra"], [3], "missing_artifact"),
        (["report"], [1], "missing_artifact"),
        ([], [], "missing_artifact"),
        (["report", "data"], [1, 2, 3], "missing_artifact"),
        (["report", "other"], [1, 2], "missing_artifact"),
    ],
)
def test_a_completion_has_all_required_artifacts_and_all_it_lists(
    made: list[str], listed: list[int], reason: str | None
) -> None:
    builder = Builder()
    replayed = replay([builder.wire("task.created", outputs=["report", "data"]), *builder.wires(WORKING[1:])])
    for name in made:
        replayed.apply(builder.wire("artifact.ready", name=name))
    complete = builder.wire("task.complete", artifact_ids=[numbered("art", number) for number in listed])
    assert validate(complete) == []
    assert replayed.apply(complete) == reason
    assert task(replayed)["terminal"] is (reason is None)


@pytest.mark.parametrize(("readiness", "reason"), [("draft", "missing_artifact"), ("ready", None), ("final", None)])
def test_a_completion_needs_its_artifacts_ready_or_final(readiness: str, reason: str | None) -> None:
    builder = Builder()
    replayed = replay([builder.wire("task.created", outputs=["report"]), *builder.wires(WORKING[1:])])
    replayed.apply(builder.wire("artifact.ready", readiness=readiness))
    assert replayed.apply(builder.wire("task.complete")) == reason


@pytest.mark.parametrize("mechanical", ["fail", "skipped"])
def test_the_mechanical_verification_of_a_completion_must_be_pass(mechanical: str) -> None:
    builder = Builder()
    replayed = replay(builder.wires(WORKING))
    verification = {"mechanical": mechanical, "semantic": "pass", "attempts": 1}
    complete = builder.wire("task.complete", verification=verification)
    assert [finding.pointer for finding in validate(complete)] == ["/payload/verification/mechanical"]
    # A reducer that is handed such a wire all the same does not complete the task by it.
    assert replayed.apply(complete) == "verification_failed"
    assert task(replayed)["task_state"] == "working"


def test_the_same_wires_give_the_same_bytes() -> None:
    for path in CASES:
        events = load(path)["events"]
        assert canonical(replay(Builder().wires(events)).as_json()) == canonical(
            replay(Builder().wires(events)).as_json()
        )
