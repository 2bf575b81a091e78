"""Seed 003: its literal envelopes are valid, each field and value is held, and older forms become those of today."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.wire import files
from redkey.wire.step import check_step, migrate, validate_step
from redkey.wire.step_legacy_output import IndexFile, migrate_output
from tests.seeds.literal import example, spellings, without

INPUT, OUTPUT = example("003-input"), example("003-output")
REQUIRED = {
    "input": (
        ("context",),
        ("context", "feature_id"),
        ("context", "workflow"),
        ("context", "iteration"),
        ("paths",),
        ("task",),
        ("task", "action"),
        ("task", "params"),
    ),
    "output": (("success",), ("summary",), ("artifacts",), ("recommendation",)),
}


def _pointers(value: Any, kind: str) -> set[str]:
    return {finding.pointer for finding in validate_step(value, kind)}  # type: ignore[arg-type]


def test_the_literal_envelopes_are_valid() -> None:
    assert check_step(INPUT) == ("input", [])
    assert check_step(OUTPUT) == ("output", [])


@pytest.mark.parametrize("kind", ["input", "output"])
def test_an_envelope_has_exactly_the_fields_of_the_seed(kind: str) -> None:
    schema = files.load(f"definitions/step/{kind}.schema.json")
    literal = {"input": INPUT, "output": OUTPUT}[kind]
    assert schema["properties"].keys() == literal.keys()
    assert schema["additionalProperties"] is False
    parts = {"input": {"context": INPUT["context"], "task": INPUT["task"]}}
    parts["output"] = {"artifact": OUTPUT["artifacts"][0]}
    for name, part in parts[kind].items():
        assert schema["$defs"][name]["properties"].keys() == part.keys()
        assert schema["$defs"][name]["additionalProperties"] is False


@pytest.mark.parametrize("kind", ["input", "output"])
def test_what_the_seed_requires_is_required(kind: str) -> None:
    literal = {"input": INPUT, "output": OUTPUT}[kind]
    for place in REQUIRED[kind]:
        assert _pointers(without(literal, *place), kind) == {"/" + "/".join(place)}


def test_prior_context_and_notes_are_optional() -> None:
    assert _pointers(without(INPUT, "prior_context"), "input") == set()
    assert _pointers(without(OUTPUT, "notes"), "output") == set()


def test_artifacts_may_be_empty() -> None:
    assert _pointers({**OUTPUT, "artifacts": []}, "output") == set()


@pytest.mark.parametrize("recommendation", ["proceed", "retry", "escalate"])
def test_the_three_recommendations_are_valid(recommendation: str) -> None:
    assert _pointers({**OUTPUT, "recommendation": recommendation}, "output") == set()


def test_the_artifact_of_the_seed_is_valid() -> None:
    artifacts = spellings(example("003-artifact"))
    assert [artifact["operation"] for artifact in artifacts] == ["create", "update"]
    for artifact in artifacts:
        assert _pointers({**OUTPUT, "artifacts": [artifact]}, "output") == set()
    overwrite = {**artifacts[0], "operation": "overwrite"}
    assert _pointers({**OUTPUT, "artifacts": [overwrite]}, "output") == {"/artifacts/0/operation"}


def test_state_updates_are_no_field_of_today() -> None:
    assert _pointers({**OUTPUT, "state_updates": {"gap_priority_queue": []}}, "output") == {"/state_updates"}


@pytest.mark.parametrize("pattern", ["params", "mode", "notes", "state"])
def test_an_older_form_of_the_seed_is_migrated_as_it_says(pattern: str) -> None:
    if pattern == "params":
        params = {"bounds": {"low": 1}, "brownfield_overrides": {"a": "b"}}
        value = migrate("input", {"task": {"action": "discover"}, **params}).value
        assert value["task"] == {"action": "discover", "params": params}
    elif pattern == "mode":
        assert migrate("input", {"mode": "classify_gaps"}).value["task"]["action"] == "classify_gaps"
    elif pattern == "notes":
        older = {"success": True, "summary": "Done.", "artifacts": [], "recommendation": "proceed"}
        older |= {"validation_report": {"passed": 8, "failed": 1}, "collision_risks": ["a", "b"]}
        value = migrate("output", older).value
        assert "validation_report" not in value
        assert any("8" in note and "1" in note for note in value["notes"])
        assert len(value["notes"]) == 2
    else:
        older = {"success": True, "summary": "Done.", "artifacts": [], "recommendation": "proceed"}
        older |= {"state_updates": {"gap_priority_queue": ["first"]}}
        value = migrate_output(older, index=IndexFile(".workflow/index.md", "# Index\n")).value
        (artifact,) = value["artifacts"]
        assert (artifact["path"], artifact["operation"]) == (".workflow/index.md", "update")
        assert "gap_priority_queue" in artifact["content"]
        assert "state_updates" not in value


def test_the_skill_tells_the_protocol() -> None:
    text = (files.root() / "definitions/skills/agent-protocol.md").read_text()
    assert text.startswith("---\nname: agent-protocol\n")
    for field in (*OUTPUT, "create", "update", "proceed", "retry", "escalate"):
        assert f"`{field}`" in text or f'"{field}"' in text
