"""Older step envelopes are migrated to the current form: the value and the list of changes are golden."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from redkey.wire import files
from redkey.wire.step import check_step, migrate, validate_step
from redkey.wire.step_legacy import CHANGES, LINE_LENGTH, LINES, Migrated
from redkey.wire.step_legacy_input import migrate_input
from redkey.wire.step_legacy_output import IndexFile, migrate_output
from tests.wire.arbitrary import gone_wrong, json_values

FOLDER = "fixtures/agent-protocol/migrations"
CASES: dict[str, Any] = files.load(f"{FOLDER}/expectations.json")
BEFORE = [files.load(f"{FOLDER}/{case}.before.json") for case in CASES]


def _migrate(case: str) -> Migrated:
    before = files.load(f"{FOLDER}/{case}.before.json")
    if case.startswith("input"):
        return migrate_input(before)
    index = CASES[case].get("index")
    return migrate_output(before, index=IndexFile(**index) if index else None)


@pytest.mark.parametrize("case", CASES)
def test_an_older_form_becomes_the_golden_one(case: str) -> None:
    migrated = _migrate(case)
    assert migrated.value == files.load(f"{FOLDER}/{case}.after.json")
    assert [{"code": change.code, "pointer": change.pointer} for change in migrated.changes] == CASES[case]["changes"]


@pytest.mark.parametrize("case", CASES)
def test_a_migrated_envelope_is_valid_and_needs_no_further_change(case: str) -> None:
    kind = case.split("-")[0]
    value = _migrate(case).value
    assert validate_step(value, kind) == []  # type: ignore[arg-type]
    assert migrate(kind, value) == Migrated(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("before", BEFORE)
def test_the_older_form_itself_is_left_alone(before: Any) -> None:
    kept = copy.deepcopy(before)
    migrate_input(before)
    migrate_output(before, index=IndexFile("index.md", "# Index"))
    assert before == kept


def test_every_change_has_a_case() -> None:
    assert {change["code"] for case in CASES.values() for change in case["changes"]} == set(CHANGES)


def test_fixtures_and_expectations_are_the_same_cases() -> None:
    names = set(files.names(FOLDER, ".json")) - {"expectations.json"}
    assert names == {f"{case}.{side}.json" for case in CASES for side in ("before", "after")}


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_a_warning_with_a_whole_sentence(case: str) -> None:
    for change in _migrate(case).changes:
        assert change.severity == "warning"
        assert "{" not in change.message


@pytest.mark.parametrize("name", [n for n in files.names("fixtures/agent-protocol", ".json") if ".valid" in n])
def test_an_envelope_of_today_is_not_touched(name: str) -> None:
    value = files.load(f"fixtures/agent-protocol/{name}")
    assert migrate(name.split(".")[0], value) == Migrated(value)  # type: ignore[arg-type]


def test_an_artifact_without_operation_is_created_when_there_is_no_such_file() -> None:
    before = files.load(f"{FOLDER}/output-hexagonal.before.json")
    migrated = migrate_output(before, exists=lambda path: False)
    assert migrated.value["artifacts"][0]["operation"] == "create"


def test_missing_fields_of_a_current_envelope_are_not_invented() -> None:
    assert migrate_input({"context": {"feature_id": None}, "task": {"action": "validate"}}).changes == ()
    assert migrate_output({"success": True, "summary": "Done."}).changes == ()


def test_a_place_that_is_half_known_is_not_completed() -> None:
    value = migrate_input({"mode": "validate", "context": {"workflow": "plan"}}).value
    assert value["context"] == {"workflow": "plan"}
    assert "/context/iteration" in {finding.pointer for finding in validate_step(value, "input")}


def test_an_action_that_cannot_be_inferred_stays_missing() -> None:
    value = migrate_input({"config": {"strict": True}}).value
    assert {finding.pointer for finding in validate_step(value, "input")} == {"/task/action"}


def test_notes_have_bounds_and_what_they_cut_off_is_lost() -> None:
    notes = ["A note."] * (LINES - 1)
    older = {"success": True, "next_recommendation": "proceed", "notes": notes, "report": "x" * 5000, "phase": 2}
    migrated = migrate_output(older)
    assert len(migrated.value["notes"]) == LINES
    assert len(migrated.value["notes"][-1]) == LINE_LENGTH
    lost = [change.pointer for change in migrated.changes if change.code == "legacy_lost"]
    assert lost == ["/report", "/phase"]
    assert validate_step(migrated.value, "output") == []


def test_decisions_above_the_limits_are_dropped_with_one_note() -> None:
    migrated = migrate_input({"task": "validate", "context": {"prior_decisions": ["No.", 5, {"a": 1}] * 1000}})
    assert migrated.value["prior_context"][:3] == ["No.", "5", '{"a":1}']
    assert len(migrated.value["prior_context"]) == LINES
    assert [change.pointer for change in migrated.changes if change.code == "legacy_lost"] == [
        "/context/prior_decisions"
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"success": True, **{f"field {number}": 1 for number in range(10_000)}},
        {"success": True, "artifacts": [{"path": "a"}] * 10_000},
        {"success": True, "result": {f"field {number}": 1 for number in range(10_000)}},
        {"success": True, "state_updates": {f"field {number}": 1 for number in range(10_000)}},
        {"task": {f"field {number}": 1 for number in range(10_000)}},
        {"task": "validate", "config": {f"field {number}": 1 for number in range(10_000)}},
        {"context": {f"field {number}": 1 for number in range(10_000)}},
    ],
)
def test_a_document_with_ten_thousand_unknown_fields_gets_a_short_reply(value: Any) -> None:
    assert len(check_step(value)[1]) <= 70


@given(json_values | gone_wrong(BEFORE))
def test_any_value_can_be_migrated_and_is_itself_left_alone(value: Any) -> None:
    before = copy.deepcopy(value)
    for kind in ("input", "output"):
        migrated = migrate(kind, value)  # type: ignore[arg-type]
        assert value == before
        validate_step(migrated.value, kind)  # type: ignore[arg-type]
        if not validate_step(migrated.value, kind):  # type: ignore[arg-type]
            assert migrate(kind, migrated.value) == Migrated(migrated.value)  # type: ignore[arg-type]
