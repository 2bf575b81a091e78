"""What `task.complete` must carry: all required final artifacts, and a mechanical verification that passed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from redkey.wire import files
from redkey.wire.catalogue import FIXTURES
from redkey.wire.validate import validate
from tests.harness.replays import Replayed, replay

STORY = ("task-created", "task-available", "task-claimed", "task-started")


def _wire(name: str) -> dict[str, Any]:
    return files.load(f"{FIXTURES}/{name}.valid.json")


def _artifact(number: int, name: str, readiness: str = "final") -> dict[str, Any]:
    wire = _wire("artifact-ready")
    wire["wire_id"] = f"wire_{number:026d}"
    wire["payload"] |= {"artifact_id": f"art_{number:026d}", "name": name, "readiness": readiness}
    return wire


def _complete(*numbers: int) -> dict[str, Any]:
    wire = _wire("task-complete")
    wire["payload"]["artifact_ids"] = [f"art_{number:026d}" for number in numbers]
    assert not validate(wire)
    return wire


def _working(*artifacts: dict[str, Any], outputs: list[str]) -> Replayed:
    begin = [_wire(name) for name in STORY]
    begin[0]["payload"]["outputs"] = outputs
    begin[0]["stream"].pop("reference_task_ids")
    wires = [*begin, *artifacts]
    assert not [finding for wire in wires for finding in validate(wire)]
    state = replay(wires)
    assert not state.void
    return state


def test_task_complete_references_all_required_final_artifacts() -> None:
    code, tests = _artifact(1, "code_commit"), _artifact(2, "test-report")
    assert _working(code, tests, outputs=["code_commit", "test-report"]).apply(_complete(1, 2)) is None


@pytest.mark.parametrize(
    ("artifacts", "listed"),
    [
        ([], ()),
        ([_artifact(1, "code_commit")], (1,)),
        ([_artifact(1, "code_commit")], (1, 2)),
        ([_artifact(1, "code_commit"), _artifact(2, "other")], (1, 2)),
        ([_artifact(1, "code_commit"), _artifact(2, "test-report", "draft")], (1, 2)),
    ],
    ids=["nothing ready", "one output missing", "one artifact unknown", "another output", "only a draft"],
)
def test_task_complete_without_a_required_final_artifact_is_refused(
    artifacts: list[dict[str, Any]], listed: tuple[int, ...]
) -> None:
    state = _working(*artifacts, outputs=["code_commit", "test-report"])
    assert state.apply(_complete(*listed)) == "missing_artifact"
    assert state.tasks()[0].as_json()["task_state"] == "working"


def test_task_complete_must_say_that_the_mechanical_verification_passed() -> None:
    wire = _wire("task-complete")
    assert wire["payload"]["verification"]["mechanical"] == "pass"
    assert not validate(wire)


@pytest.mark.parametrize("mechanical", ["fail", "skipped", "PASS", "", True, None, ...])
def test_task_complete_with_any_other_mechanical_verification_is_refused(mechanical: Any) -> None:
    wire = copy.deepcopy(_wire("task-complete"))
    if mechanical is ...:
        del wire["payload"]["verification"]["mechanical"]
    else:
        wire["payload"]["verification"]["mechanical"] = mechanical
    found = {(finding.pointer, finding.code) for finding in validate(wire)}
    code = "schema_required" if mechanical is ... else "schema_const"
    assert found == {("/payload/verification/mechanical", code)}


@pytest.mark.parametrize("semantic", ["pass", "fail", "skipped"])
def test_the_semantic_verification_may_have_any_result(semantic: str) -> None:
    wire = _wire("task-complete")
    wire["payload"]["verification"]["semantic"] = semantic
    assert not validate(wire)
