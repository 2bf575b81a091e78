"""Valid and invalid wires: nulls, versions, sizes, rules between fields, and both ways to read bytes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import Finding, JsonRefused, RedKeyError, WireRefused
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, catalogue
from redkey.wire.decode import decode
from redkey.wire.validate import MESSAGE_LIMIT, _read_compact, drop_nulls, read, validate
from tests.wire.arbitrary import gone_wrong, json_values
from tools.derive import file_stem
from tools.largest import largest

Wire = dict[str, Any]


def _valid(event: str) -> Wire:
    return files.load(f"{FIXTURES}/{file_stem(event)}.valid.json")


STARTED = _valid("task.started")
GOLDEN = [_valid(event) for event in catalogue()]


def _changed(wire: Wire, *path: str, value: Any) -> Wire:
    changed = copy.deepcopy(wire)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return changed


def _codes(value: Any) -> list[tuple[str, str]]:
    return [(finding.pointer, finding.code) for finding in validate(value)]


@pytest.mark.parametrize("wire", GOLDEN, ids=lambda wire: wire["type"])
def test_a_valid_wire_is_read_in_any_spelling(wire: Wire) -> None:
    compact = canonical(wire)
    assert read(compact) == _read_compact(compact) == wire
    assert read(json.dumps(wire, indent=2).encode()) == wire
    assert read(json.dumps(wire).encode("utf-8")) == wire


@pytest.mark.parametrize("path", [("extensions",), ("stream", "parent_task_id"), ("payload", "agent_id")])
def test_an_optional_field_that_is_null_is_read_as_absent(path: tuple[str, ...]) -> None:
    wire = _changed(STARTED, *path, value=None)
    assert validate(wire) == []
    assert read(orjson.dumps(wire)) == drop_nulls(wire)
    assert None not in read(orjson.dumps(wire))["payload"].values()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (("payload", "claim_id"), "schema_required"),
        (("state",), "schema_required"),
        (("stream",), "schema_required"),
        (("sender",), "schema_required"),
        (("unheard_of",), "schema_additionalProperties"),
        (("payload", "unheard_of"), "schema_additionalProperties"),
        (("stream", "unheard_of"), "schema_additionalProperties"),
    ],
)
def test_null_does_not_fill_a_required_field_or_hide_an_unknown_one(path: tuple[str, ...], code: str) -> None:
    assert _codes(_changed(STARTED, *path, value=None)) == [("/" + "/".join(path), code)]


def test_state_may_be_null_where_there_is_none() -> None:
    assert validate(_changed(_valid("message.added"), "state", value=None)) == []


@pytest.mark.parametrize("version", ["1.0", "2.0", "", None, 1.1, ["1.1"], {"1": 1}, "1.1\n"])
def test_an_unknown_version_is_named_with_those_that_are_known(version: Any) -> None:
    (found,) = validate(_changed(STARTED, "wire", value=version))
    assert (found.pointer, found.code) == ("/wire", "unknown_version")
    assert "1.0, 1.1" in found.message
    assert ("lift it" in found.message) == (version == "1.0")


@pytest.mark.parametrize("event", ["task.begun", "", "task.started ", "__class__", "x" * 10_000])
def test_an_unknown_type_is_named(event: str) -> None:
    (found,) = validate(_changed(STARTED, "type", value=event))
    assert (found.pointer, found.code) == ("/type", "unknown_type")
    assert len(found.message) < 120


@pytest.mark.parametrize("event", [None, 7, ["task.started"], {"a": 1}, True])
def test_a_type_that_is_no_text_is_a_finding(event: Any) -> None:
    assert ("/type", "schema_type") in _codes(_changed(STARTED, "type", value=event))


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "text", [], [STARTED]])
def test_a_wire_is_an_object(value: Any) -> None:
    (found,) = validate(value)
    assert (found.pointer, found.code) == ("", "schema_type")


def test_every_finding_is_reported_at_once() -> None:
    wire = _changed(STARTED, "sender", value="quinn-03")
    wire["payload"] = {"claim_id": 7, "attempt": 0}
    del wire["stream"]["context_id"]
    assert _codes(wire) == [
        ("/payload/attempt", "schema_minimum"),
        ("/payload/claim_id", "schema_type"),
        ("/sender", "schema_pattern"),
        ("/stream/context_id", "schema_required"),
    ]


def test_a_message_of_1_025_canonical_bytes_is_refused_by_its_size_and_1_024_is_not() -> None:
    wire = _changed(STARTED, "extensions", value={"redkey.padding": ""})
    for size in (MESSAGE_LIMIT, MESSAGE_LIMIT + 1):
        wire["extensions"]["redkey.padding"] += "x" * (size - len(canonical(wire)))
        assert len(canonical(wire)) == size
        if size <= MESSAGE_LIMIT:
            assert read(json.dumps(wire, indent=4).encode()) == wire
    with pytest.raises(WireRefused) as refused:
        read(json.dumps(wire, indent=4).encode())
    (found,) = refused.value.findings()
    assert (found.code, "1,025 canonical bytes" in found.message) == ("wire_too_large", True)


def test_blanks_and_escapes_do_not_count() -> None:
    wire = largest("task.complete")[0]
    assert read(json.dumps(wire, indent=40).encode()) == wire


@pytest.mark.parametrize("spelling", ["1.0", "10e-1", "1.000"])
def test_whole_numbers_are_integers_however_they_are_written(spelling: str) -> None:
    wire = _changed(STARTED, "payload", "attempt", value=1)
    data = canonical(wire).replace(b'"attempt":1', f'"attempt":{spelling}'.encode())
    attempt = read(data)["payload"]["attempt"]
    assert type(attempt) is int
    data = canonical(_valid("task.complete")).replace(b'"attempts":1', f'"attempts":{spelling}'.encode())
    assert type(read(data)["payload"]["verification"]["attempts"]) is int


def _integers(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, part in value.items():
        if isinstance(part, dict):
            yield from _integers(part, (*path, key))
        elif type(part) is int:
            yield (*path, key)


@pytest.mark.parametrize("event", catalogue())
def test_no_integer_of_any_type_slips_through_as_a_fraction(event: str) -> None:
    for wire in [_valid(event), *largest(event)]:
        for path in _integers(wire):
            number = wire
            for step in path:
                number = number[step]
            data = orjson.dumps(_changed(wire, *path, value=float(number)))
            assert data.endswith(b"}")
            assert canonical(read(data)) == canonical(wire)
            assert not [path for path in _floats(read(data)) if path[-1] not in ("cost_usd", "reserved_usd")]


def _floats(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, part in value.items():
        if isinstance(part, dict):
            yield from _floats(part, (*path, key))
        elif type(part) is float:
            yield (*path, key)


def test_a_cost_may_have_a_fraction_and_a_whole_cost_is_an_integer() -> None:
    wire = _valid("task.complete")
    assert read(orjson.dumps(wire))["payload"]["cost_usd"] == 0.42
    whole = orjson.dumps(_changed(wire, "payload", "cost_usd", value=2.0))
    assert b'"cost_usd":2.0' in whole
    assert type(read(whole)["payload"]["cost_usd"]) is int


def test_a_duplicate_key_is_refused_even_if_its_last_value_is_valid() -> None:
    data = canonical(STARTED).replace(b'"claim_id"', b'"claim_id":"x","claim_id"')
    assert not validate(orjson.loads(data))
    with pytest.raises(JsonRefused) as refused:
        read(data)
    assert (refused.value.code, refused.value.pointer) == ("json_duplicate_key", "/payload/claim_id")


@pytest.mark.parametrize(
    ("day", "exists"),
    [
        ("2026-02-28", True),
        ("2026-02-29", False),
        ("2028-02-29", True),
        ("2100-02-29", False),
        ("2026-04-31", False),
        ("2026-12-31", True),
        ("0000-01-01", False),
        ("0001-01-01", True),
        ("9999-12-31", True),
    ],
)
def test_a_time_must_exist(day: str, exists: bool) -> None:
    wire = _changed(STARTED, "ts", value=f"{day}T23:59:59.999999999Z")
    assert _codes(wire) == ([] if exists else [("/ts", "no_such_time")])
    claimed = _changed(_valid("task.claimed"), "payload", "lease_expires_at", value=f"{day}T00:00:00Z")
    assert _codes(claimed) == ([] if exists else [("/payload/lease_expires_at", "no_such_time")])


@pytest.mark.parametrize("wire", GOLDEN, ids=lambda wire: wire["type"])
def test_what_the_stream_says_the_payload_may_repeat_and_not_contradict(wire: Wire) -> None:
    kind, subject = wire["stream"]["stream_id"].split(":")[:2]
    field = f"{kind}_id"
    repeated = _changed(wire, "payload", field, value=subject)
    if any(code == "schema_additionalProperties" for _, code in _codes(repeated)):
        return
    assert _codes(repeated) == []
    other = subject[:-1] + ("1" if subject[-1] != "1" else "2")
    contradicted = _changed(wire, "payload", field, value=other)
    assert (f"/payload/{field}", "stream_mismatch") in _codes(contradicted)


@pytest.mark.parametrize("kind", ["error", "timeout", "verification", "rejected"])
def test_a_failure_that_a_holder_reports_names_its_claim(kind: str) -> None:
    wire = _changed(_valid("task.failed"), "payload", "kind", value=kind)
    assert _codes(wire) == []
    del wire["payload"]["claim_id"]
    assert _codes(wire) == [("/payload/claim_id", "claim_id_missing")]


@pytest.mark.parametrize("kind", ["deadline", "lease_losses", "dependency_failed"])
def test_a_failure_that_no_holder_reports_needs_no_claim(kind: str) -> None:
    wire = _changed(_valid("task.failed"), "payload", "kind", value=kind)
    del wire["payload"]["claim_id"]
    assert _codes(wire) == []


@pytest.mark.parametrize(
    ("attempt", "retry_of", "fits"), [(1, None, True), (2, 1, True), (3, 1, False), (2, None, False)]
)
def test_an_attempt_retries_the_one_before_it(attempt: int, retry_of: int | None, fits: bool) -> None:
    wire = _changed(_valid("task.created"), "stream", "stream_id", value=f"task:0.0.8830671:attempt:{attempt}")
    if retry_of:
        wire["payload"]["retry_of"] = retry_of
    assert _codes(wire) == ([] if fits else [("/payload/retry_of", "retry_of_mismatch")])


@given(gone_wrong(GOLDEN))
def test_both_ways_to_read_bytes_agree(value: Any) -> None:
    data = orjson.dumps(value)
    compact = _read_compact(data)
    try:
        decoded = decode(data)
    except JsonRefused:
        assert compact is None
        return
    findings = validate(decoded)
    if compact is not None:
        assert findings == []
        assert canonical(compact) == canonical(decoded)
    elif not findings:
        # What is valid and not compact has nulls or whole fractions, and is read all the same.
        assert read(data) == drop_nulls(decoded)


@given(json_values | gone_wrong(GOLDEN))
def test_any_value_is_valid_or_has_findings_that_can_be_shown(value: Any) -> None:
    for finding in validate(value):
        assert isinstance(finding, Finding)
        assert finding.code
        assert finding.pointer == "" or finding.pointer.startswith("/")
        assert 0 < len(finding.message) < 600
        orjson.dumps(finding.as_json())


@given(st.dictionaries(st.sampled_from(["wire", "type", "stream", "payload", "state"]), json_values))
def test_half_a_wire_is_refused(value: Any) -> None:
    with pytest.raises(RedKeyError) as refused:
        read(json.dumps(value | {"wire": "1.1"}).encode())
    assert refused.value.findings()
