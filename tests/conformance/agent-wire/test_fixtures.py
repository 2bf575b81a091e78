"""The golden fixtures of Agent Wire 1.1 do what their names and expectations.json say."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from redkey.errors import Finding, JsonRefused, WireRefused
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, SCHEMAS, catalogue
from redkey.wire.decode import decode
from redkey.wire.schema import compile_schema
from redkey.wire.validate import MESSAGE_LIMIT, read
from tests.harness.replays import replay
from tools.derive import file_stem

HERE = files.root() / FIXTURES
EXPECTATIONS = files.load(f"{FIXTURES}/expectations.json")
VALID = sorted(path.name for path in HERE.glob("*.valid*.json"))
INVALID = sorted(path.name for path in HERE.glob("*.invalid-*.json"))
DERIVED = sorted(path for path in (HERE / "derived").glob("*.jsonl") if path.stem != "largest")
# Documents that stand outside the ledger; everything else is a wire.
DOCUMENTS = {"message", "part", "artifact"}
EVENTS = {file_stem(event): event for event in catalogue()}

# fmt: off
SEED_FIXTURES = {
    "task-created.valid.json", "task-available.valid.json", "task-claimed.valid.json", "task-started.valid.json",
    "artifact-ready.valid.json", "task-complete.valid.json", "task-complete.invalid-missing-artifact.json",
    "task-complete.invalid-verification-fail.json", "task-blocked.valid.json", "task-failed.valid.json",
    "task-cancelled.valid.json",
}
SEED_SCHEMAS = {
    f"{name}.schema.json" for name in (
        "envelope", "stream", "state", "task-created", "task-available", "task-claimed", "task-started", "task-blocked",
        "artifact-ready", "task-complete", "task-failed", "task-cancelled",
    )
}
# fmt: on
SEED_CONTRACTS = {"task-state-machine.json", "event-state-map.json", "a2a-task-state-map.json"}


def _kind(name: str) -> str:
    return name.split(".", 1)[0]


def _judge(name: str, data: bytes) -> Sequence[Finding]:
    """Everything that is wrong with a fixture before any state is asked."""
    try:
        if _kind(name) in DOCUMENTS:
            return compile_schema(f"{SCHEMAS}/{_kind(name)}.schema.json").findings(decode(data))
        read(data)
    except (JsonRefused, WireRefused) as refused:
        return refused.findings()
    return ()


def test_every_file_that_the_seed_lists_is_there() -> None:
    for folder, wanted in (
        ("fixtures", SEED_FIXTURES),
        ("schemas", SEED_SCHEMAS),
        ("contracts", SEED_CONTRACTS),
    ):
        assert wanted <= set(files.names(f"{folder}/agent-wire/v1.1", ".json"))


def test_every_event_type_has_a_schema_and_a_valid_fixture() -> None:
    for event, kind in catalogue().items():
        assert kind.schema == f"{SCHEMAS}/{file_stem(event)}.schema.json"
        assert files.load(f"{FIXTURES}/{file_stem(event)}.valid.json")["type"] == event


def test_there_is_no_schema_without_an_event_type_or_a_document() -> None:
    shared = {"envelope", "stream", "state", "types", *DOCUMENTS}
    assert {_kind(name) for name in files.names(SCHEMAS, ".json")} == EVENTS.keys() | shared


@pytest.mark.parametrize("name", VALID)
def test_every_valid_fixture_validates_against_the_event_schema_and_the_envelope_schema(name: str) -> None:
    data = (HERE / name).read_bytes()
    kind = _kind(name)
    assert not _judge(name, data)
    value = decode(data)
    assert compile_schema(f"{SCHEMAS}/{kind}.schema.json").is_valid(value)
    if kind not in DOCUMENTS:
        assert compile_schema(f"{SCHEMAS}/envelope.schema.json").is_valid(value)
        assert value["type"] == EVENTS[kind]
        assert len(canonical(value)) <= MESSAGE_LIMIT


def test_every_invalid_fixture_is_expected_and_every_expectation_has_a_fixture() -> None:
    assert set(INVALID) == set(EXPECTATIONS)
    assert {expected["stage"] for expected in EXPECTATIONS.values()} == {"json", "schema", "semantic", "transition"}


@pytest.mark.parametrize("name", INVALID)
def test_every_invalid_fixture_fails_for_the_expected_reason(name: str) -> None:
    expected = EXPECTATIONS[name]
    found = _judge(name, (HERE / name).read_bytes())
    if expected["stage"] == "transition":
        assert not found, "a wire that a state machine refuses is a valid wire"
        _check_transition(name, expected)
        return
    assert (expected["code"], expected["pointer"]) in {(finding.code, finding.pointer) for finding in found}
    stage = _stage(expected["code"])
    assert expected["stage"] == stage
    assert all(_stage(finding.code) == stage for finding in found), "one stage refuses, the later ones are not asked"


def _check_transition(name: str, expected: dict[str, Any]) -> None:
    before = replay(read((HERE / earlier).read_bytes()) for earlier in expected["after"])
    assert not before.void, "what comes before applies"
    wire = read((HERE / name).read_bytes())
    attempt = before.attempts.get(wire["stream"]["stream_id"])
    if "requires" in expected:
        assert attempt is not None
        assert list(attempt.outputs or ()) == expected["requires"]
    state = before.as_json()["tasks"]
    assert before.apply(wire) == expected["code"]
    assert before.as_json()["tasks"] == state, "a void wire changes nothing"


def _stage(code: str) -> str:
    if code.startswith("json_"):
        return "json"
    return "schema" if code.startswith(("schema_", "unknown_", "wire_too_large")) else "semantic"


@pytest.mark.parametrize("path", DERIVED, ids=lambda path: path.stem)
def test_every_derived_case_fails_for_the_expected_reason_and_no_other(path: Path) -> None:
    cases = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert cases
    assert len({case["name"] for case in cases}) == len(cases)
    for case in cases:
        found = _judge(path.name, orjson.dumps(case["wire"]))
        at = case["pointer"]
        assert (case["code"], at) in {(finding.code, finding.pointer) for finding in found}, case["name"]
        others = [item for item in found if item.pointer != at and not item.pointer.startswith(f"{at}/")]
        assert {item.code for item in others} <= {"wire_too_large"}, case["name"]


def test_every_event_type_has_derived_cases() -> None:
    assert {path.stem for path in DERIVED} == EVENTS.keys() | {"envelope"}


def test_the_fixtures_tell_one_story() -> None:
    wires = {name: files.load(f"{FIXTURES}/{name}") for name in VALID if _kind(name) not in DOCUMENTS}
    ids = [wire["wire_id"] for wire in wires.values()]
    assert len(set(ids)) == len(ids)
    causes = {wire["stream"].get("causation_id") for wire in wires.values()} - {None}
    assert causes <= set(ids), "a cause is one of the wires"
    life = ["created", "available", "claimed", "plan-created", "started", "lease-extended", "complete"]
    order = sorted(
        (wire for name, wire in wires.items() if name in {f"task-{word}.valid.json" for word in life}),
        key=lambda wire: wire["stream"]["stream_seq"],
    )
    done = replay([*order[:-1], wires["artifact-ready.valid.json"], order[-1]])
    assert not done.void
    assert done.tasks()[0].as_json()["task_state"] == "completed"


def test_the_artifact_fixture_is_the_content_that_artifact_ready_names() -> None:
    artifact = files.load(f"{FIXTURES}/artifact.valid.json")
    payload = files.load(f"{FIXTURES}/artifact-ready.valid.json")["payload"]
    document = canonical(artifact)
    assert payload["content_ref"] == {"sha256": sha256(document).hexdigest(), "bytes": len(document)}
    for name in ("artifact_id", "name", "version", "sha256", "bytes", "readiness"):
        assert payload[name] == artifact[name]
