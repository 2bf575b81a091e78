"""Seed 001, "Required Conformance Tests": ten things that tests must prove, and the test that proves each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# fmt: off
PROOFS = {
    "every valid fixture validates against the event schema and the envelope schema":
        ("test_fixtures.py", "test_every_valid_fixture_validates_against_the_event_schema_and_the_envelope_schema"),
    "every invalid fixture fails for the expected reason":
        ("test_fixtures.py", "test_every_invalid_fixture_fails_for_the_expected_reason"),
    "every event maps to exactly one normalised state category":
        ("test_categories.py", "test_every_event_maps_to_exactly_one_normalised_category"),
    "every allowed transition is accepted by the state machine":
        ("test_transitions.py", "test_every_allowed_transition_is_accepted_and_every_disallowed_one_rejected"),
    "every disallowed transition is rejected by the state machine":
        ("test_transitions.py", "test_every_allowed_transition_is_accepted_and_every_disallowed_one_rejected"),
    "the reducer replays ordered wires into exact task state":
        ("test_reducer_replay.py", "test_the_reducer_replays_ordered_wires_into_exact_task_state"),
    "the reducer records artifact counts and ids from artifact.ready":
        ("test_reducer_replay.py", "test_the_reducer_records_artifact_counts_and_ids_from_artifact_ready"),
    "task.complete references all required final artifacts":
        ("test_completion.py", "test_task_complete_references_all_required_final_artifacts"),
    "the mechanical verification of task.complete must be pass":
        ("test_completion.py", "test_task_complete_must_say_that_the_mechanical_verification_passed"),
    "task and artifact events map cleanly to A2A task and artifact events":
        ("test_a2a_projection.py", "test_every_object_is_an_a2a_object_and_the_task_comes_first"),
}
# fmt: on


def test_there_are_ten() -> None:
    assert len(PROOFS) == 10


@pytest.mark.parametrize("claim", PROOFS)
def test_each_is_proved_by_a_test_of_this_folder(claim: str) -> None:
    file, name = PROOFS[claim]
    tree = ast.parse((HERE / file).read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1
    marks = {ast.unparse(mark) for mark in found[0].decorator_list}
    assert not any("skip" in mark or "xfail" in mark for mark in marks)
