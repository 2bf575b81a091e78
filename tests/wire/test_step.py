"""Step envelopes of current and older forms are read into structs, and inputs are distinguished from outputs."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.errors import WireRefused
from redkey.wire import files
from redkey.wire.step import (
    StepInput,
    StepOutput,
    check_step,
    kind_of,
    read_step_input,
    read_step_output,
    validate_step,
)

FOLDER = "fixtures/agent-protocol"


def _load(name: str) -> Any:
    return files.load(f"{FOLDER}/{name}")


def test_an_input_is_read_with_its_parts() -> None:
    step = read_step_input(_load("input.valid.json"))
    assert isinstance(step, StepInput)
    assert (step.context.feature_id, step.context.iteration) == ("005-user-auth", 1)
    assert step.task.params["phase"] == "initial"
    assert step.prior_context is not None
    assert len(step.prior_context) == 3


def test_a_feature_may_have_no_id_yet() -> None:
    assert read_step_input(_load("input.valid-scaffold.json")).context.feature_id is None


def test_a_path_may_be_a_list() -> None:
    paths = read_step_input(_load("input.valid-path-list.json")).paths
    assert paths["artifacts"] == ("specs/007-billing/plan.md", "specs/007-billing/tasks.md")
    assert paths["check_module"] == "checks/task-checks.md"


def test_an_output_is_read_with_its_parts() -> None:
    step = read_step_output(_load("output.valid.json"))
    assert isinstance(step, StepOutput)
    assert step.recommendation == "proceed"
    assert step.artifacts[0].operation == "update"
    assert step.notes is not None
    assert len(step.notes) == 5


@pytest.mark.parametrize("name", [n for n in files.names(FOLDER, ".json") if ".valid" in n])
def test_the_kind_of_an_envelope_follows_from_its_fields(name: str) -> None:
    assert kind_of(_load(name)) == name.split(".")[0]
    assert check_step(_load(name)) == (name.split(".")[0], [])


@pytest.mark.parametrize("case", files.load(f"{FOLDER}/migrations/expectations.json"))
def test_the_kind_of_an_older_envelope_follows_from_its_fields(case: str) -> None:
    assert kind_of(_load(f"migrations/{case}.before.json")) == case.split("-")[0]


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, {"hello": 1}, {"context": {}, "success": True}])
def test_a_value_that_is_neither_input_nor_output_is_reported(value: Any) -> None:
    kind, findings = check_step(value)
    assert kind is None
    assert [finding.code for finding in findings] == ["step_kind_unknown"]


@pytest.mark.parametrize("recommendation", ["complete", "skip", "Proceed", "", None, 1])
def test_there_are_three_recommendations_and_no_more(recommendation: Any) -> None:
    with pytest.raises(WireRefused) as refused:
        read_step_output({**_load("output.valid.json"), "recommendation": recommendation})
    assert refused.value.pointer == "/recommendation"


def test_an_older_output_is_read_and_what_was_changed_is_a_warning() -> None:
    older = _load("migrations/output-hexagonal.before.json")
    assert read_step_output(older).summary == "The spec has no gaps."
    kind, findings = check_step(older)
    assert kind == "output"
    assert {finding.severity for finding in findings} == {"warning"}


def test_an_artifact_that_leads_out_is_refused_in_older_forms_too() -> None:
    with pytest.raises(WireRefused) as refused:
        read_step_output(
            {
                "success": True,
                "result": "Done.",
                "artifacts": [{"path": "../x", "content": ""}],
                "next_recommendation": "proceed",
            }
        )
    assert (refused.value.code, refused.value.pointer) == ("path_parent", "/artifacts/0/path")


def test_an_input_path_that_leads_out_is_a_warning() -> None:
    value = _load("input.valid-path-list.json")
    value["paths"] |= {"index": "/srv/index.md", "artifacts": ["a.md", "../b.md"]}
    found = [(finding.code, finding.pointer, finding.severity) for finding in validate_step(value, "input")]
    assert found == [
        ("path_parent", "/paths/artifacts/1", "warning"),
        ("path_absolute", "/paths/index", "warning"),
    ]
    assert read_step_input(value).paths["index"] == "/srv/index.md"


def test_a_stated_kind_is_not_guessed() -> None:
    kind, findings = check_step(_load("output.valid.json"), "input")
    assert kind == "input"
    assert any(finding.severity == "error" for finding in findings)
