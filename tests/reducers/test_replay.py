"""Replay beyond single cases: structures, null fields, ledger time, and what is kept in memory."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.reducers.stream import begin
from redkey.wire.ids import task_stream
from redkey.wire.validate import validate
from tests.harness.replays import Replayed, apply, replay
from tests.reducers.case import TASK, Builder, numbered

STREAM = task_stream(TASK, 1)
CLAIMED = ["task.available", "task.claimed"]
PLANNED = {"workflow_id": numbered("wf", 1), "plan_task": "draft"}
PINNED = {"structure_ref": {"sha256": "0" * 64, "bytes": 1}}


def begun(created: dict[str, Any], **options: Any) -> tuple[Builder, Replayed]:
    builder = Builder()
    wires = [builder.wire("task.created", **created), *builder.wires(CLAIMED)]
    assert [validate(wire) for wire in wires] == [[], [], []]
    return builder, replay(wires, **options)


@pytest.mark.parametrize("created", [PLANNED, PINNED], ids=["plan task", "pinned structure"])
def test_outputs_listed_in_a_structure_are_required_at_completion(created: dict[str, Any]) -> None:
    builder, replayed = begun(created, outputs=lambda wire: ["report"])
    assert replayed.attempts[STREAM].outputs == ("report",)
    assert replayed.apply(builder.wire("task.complete")) == "missing_artifact"
    replayed.apply(builder.wire("artifact.ready", name="report"))
    assert replayed.apply(builder.wire("task.complete")) is None


@pytest.mark.parametrize("options", [{}, {"outputs": lambda wire: None}], ids=["no lookup", "not here"])
def test_unknown_outputs_are_reported_as_unknown_and_only_listed_ones_are_checked(
    options: dict[str, Any],
) -> None:
    builder, replayed = begun(PLANNED, **options)
    assert replayed.as_json()["tasks"][TASK]["attempts"]["1"]["outputs"] is None
    assert replayed.apply(builder.wire("task.complete", artifact_ids=[numbered("art", 5)])) == "missing_artifact"
    assert replayed.apply(builder.wire("task.complete")) is None


def test_outputs_on_the_wire_are_never_asked_for_elsewhere() -> None:
    _, replayed = begun({"outputs": ["report"]}, outputs=lambda wire: pytest.fail("asked"))
    assert replayed.attempts[STREAM].outputs == ("report",)


def test_null_is_read_as_absent() -> None:
    builder = Builder()
    wires = builder.wires(["task.created", *CLAIMED, "artifact.ready", "task.blocked"])
    wires[0]["payload"] |= {"outputs": None, "retry_of": None, "workflow_id": None, "structure_ref": None}
    wires[2]["payload"]["lease_expires_at"] = None
    wires[3]["payload"]["derived_from"] = None
    wires[4]["payload"]["depends_on"] = None
    assert [validate(wire) for wire in wires] == [[]] * 5
    replayed = replay(wires)
    assert replayed.void == []
    assert replayed.attempts[STREAM].outputs == ()


def test_the_ledger_time_replaces_the_time_of_the_producer() -> None:
    attempt = begin(TASK, 1)
    for nanoseconds, wire in enumerate(Builder().wires(["task.created", *CLAIMED]), 1000):
        assert apply(attempt, wire, nanoseconds) is None
    assert (attempt.created_at, attempt.changed_at) == (1000, 1002)
    assert attempt.hold is not None
    assert attempt.hold.since == 1002


def test_a_stream_that_never_started_does_not_count() -> None:
    builder = Builder()
    replayed = replay(builder.wire("task.started", task=number) for number in range(1, 50))
    assert replayed.attempts == {}
    assert len(replayed.void) == 49


def test_void_wires_are_named_with_type_stream_and_reason() -> None:
    state = replay(Builder().wires(["task.created", "task.started"])).as_json()
    assert state["void"] == [
        {
            "wire_id": numbered("wire", 2),
            "type": "task.started",
            "stream_id": STREAM,
            "reason": "transition_refused",
        }
    ]
    assert state["counts"]["reasons"] == {"transition_refused": 1}


def test_nothing_replays_to_nothing() -> None:
    state = replay([]).as_json()
    assert state["counts"] == {"wires": 0, "applied": 0, "void": 0, "others": 0, "reasons": {}}
    assert [state[name] for name in ("void", "tasks", "artifacts", "projects", "claims")] == [[], {}, {}, {}, {}]


def test_the_returned_state_is_a_copy() -> None:
    builder, replayed = begun({})
    replayed.as_json()["tasks"][TASK]["attempts"]["1"]["hold"]["claim_id"] = "somebody"
    assert replayed.as_json()["tasks"][TASK]["attempts"]["1"]["hold"]["claim_id"] == numbered("clm", 1)
    replayed.apply(builder.wire("task.complete"))
    replayed.as_json()["tasks"][TASK]["verification"]["mechanical"] = "fail"
    assert replayed.as_json()["tasks"][TASK]["verification"]["mechanical"] == "pass"


def test_an_attempt_in_another_context_is_void_and_its_task_stays_where_it_is() -> None:
    builder = Builder()
    wires = [builder.wire("task.created"), builder.wire("task.created", attempt=2, context=2)]
    for order, context in ((wires, "project:1"), (wires[::-1], "project:2")):
        state = replay(order).as_json()
        assert list(state["projects"]) == [context]
        assert [one["wire_id"] for one in state["void"]] == [order[1]["wire_id"]]


def test_projects_and_tasks_are_listed_by_id() -> None:
    builder = Builder()
    replayed = replay(builder.wire("task.created", task=number, context=9 - number) for number in (3, 1, 2))
    assert [task.task_id for task in replayed.tasks()] == [numbered("task", number) for number in (1, 2, 3)]
    assert [project.context_id for project in replayed.projects()] == ["project:6", "project:7", "project:8"]
