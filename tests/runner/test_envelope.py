"""Envelopes made from tasks: where each field comes from, and what is kept when there is too much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.client import Assignment
from redkey.errors import StepFailed, WireRefused
from redkey.runner.envelope import input_bytes, read_notes, read_output, slug, step_input, write_notes
from redkey.wire.decode import decode
from redkey.wire.step import check_step
from tests.harness.samples import assignment


def _task(**more: Any) -> Assignment:
    return assignment(queue_id="queue_Pod.Casts", **more)


def test_everything_comes_from_the_input_where_it_says_so() -> None:
    given = {"feature_id": "005-user-auth", "action": "classify_gaps", "paths": {"spec": "s.md"}, "params": {"a": 1}}
    made = step_input(_task(input=given, plan_task_id="other", workflow_id="wf_1"), workflow="Specify It!")
    assert made.context.feature_id == "005-user-auth"
    assert made.context.workflow == "specify-it"
    assert made.task.action == "classify_gaps"
    assert made.task.params == {"a": 1}
    assert made.paths == {"spec": "s.md"}


def test_else_from_the_run_the_plan_and_the_queue() -> None:
    made = step_input(
        _task(workflow_id="wf_1", plan_task_id="guest_intake", workflow_input={"guest": "P"}), workflow=""
    )
    assert made.context.feature_id == "wf_1"
    assert made.context.workflow == "pod-casts"
    assert made.task.action == "guest_intake"
    assert made.task.params == {"guest": "P"}
    bare = step_input(_task(input=["x"]), workflow="")
    assert bare.context.feature_id is None
    assert bare.task.action == "execute"
    assert bare.task.params == {"input": ["x"]}


def test_upstream_artifacts_go_before_paths_of_the_same_name() -> None:
    made = step_input(_task(input={"paths": {"a": "mine", "b": "b"}}), workflow="w", paths={"a": "inputs/a.md"})
    assert made.paths == {"a": "inputs/a.md", "b": "b"}


def test_iterations_count_attempts_and_tries() -> None:
    assert step_input(_task(attempt=2), workflow="w", tries=3).context.iteration == 4


def test_prior_context_holds_notes_then_what_was_said_and_keeps_the_newest() -> None:
    task = _task(prior_context=("Spec complete\n3 edge cases", "two\n  lines"), note="Too short.")
    made = step_input(task, workflow="w", said=["output_short: 3 characters"])
    assert made.prior_context == (
        "Spec complete",
        "3 edge cases",
        "two\nlines",
        "An approver sent the attempt before this one back: Too short.",
        "output_short: 3 characters",
    )
    many = step_input(_task(prior_context=("\n".join(map(str, range(100))),)), workflow="w", said=["x" * 5000])
    assert many.prior_context is not None
    assert len(many.prior_context) == 64
    assert len(many.prior_context[-1]) == 1000


@pytest.mark.parametrize(
    "given", [{"action": "No Verb"}, {"paths": {"x": 3}}, {"feature_id": "x" * 101}, {"paths": []}]
)
def test_an_input_that_makes_no_envelope_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(WireRefused):
        step_input(_task(input=given), workflow="w")


# What cannot have come from the server is not tried: it refuses NUL and lone surrogates.
_TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_JSON = st.recursive(st.none() | st.booleans() | st.text(_TEXT, max_size=9), lambda inner: st.lists(inner, max_size=3))


@given(
    value=_JSON,
    name=st.text(_TEXT, max_size=80),
    plan=st.text(_TEXT, max_size=80),
    notes=st.lists(st.text(_TEXT), max_size=4),
)
def test_whatever_a_task_is_called_its_envelope_is_valid(value: Any, name: str, plan: str, notes: list[str]) -> None:
    task = _task(input=value, plan_task_id=plan, prior_context=("\n".join(notes),))
    kind, findings = check_step(decode(input_bytes(step_input(task, workflow=name))))
    assert kind == "input"
    assert not [one for one in findings if one.severity == "error"]


@given(notes=st.lists(st.text(st.characters(categories=["L", "N", "P"], include_characters=" \n"), min_size=1)))
def test_notes_travel_as_one_text_and_come_out_as_they_went_in(notes: list[str]) -> None:
    kept = [note for note in notes if note.strip() and note == note.strip() and "\n\n" not in note]
    assert read_notes(write_notes(kept)) == kept


def test_a_slug_is_a_name_for_machines() -> None:
    assert (slug("Podcast Production!"), slug("é"), slug("--a--")) == ("podcast-production", "", "a")


@given(data=st.binary(max_size=200))
def test_no_bytes_make_reading_an_output_fail_otherwise(data: bytes) -> None:
    with pytest.raises(StepFailed):
        read_output(data)
