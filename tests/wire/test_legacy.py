"""Agent Wire 1.0 is read into structs, and other messages are refused with a clear reason."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.errors import WireRefused
from redkey.wire import files
from redkey.wire.legacy import PAYLOADS, Brief, Claim, Inbox, read_wire_1_0, utc, validate_wire_1_0


def _load(name: str) -> dict[str, Any]:
    value: dict[str, Any] = files.load(f"fixtures/agent-wire/v1.0/{name}")
    return value


def test_a_brief_is_read_with_its_parts() -> None:
    wire = read_wire_1_0(_load("brief.valid.json"))
    assert isinstance(wire.payload, Brief)
    assert (wire.type, wire.sender) == ("brief", "mindy")
    assert wire.payload.output_contract.type == "pr"
    assert wire.payload.env.project_id == "knowledgevault-m01r"


@pytest.mark.parametrize("kind", PAYLOADS)
def test_each_message_type_has_a_schema_and_a_form(kind: str) -> None:
    assert type(read_wire_1_0(_load(f"{kind}.valid.json")).payload) is PAYLOADS[kind]


def test_null_and_absent_are_the_same() -> None:
    value = _load("brief.valid-optional-absent.json")
    absent = read_wire_1_0(value)
    value["payload"]["context"] = None
    value["payload"]["env"] |= {"project_id": None, "repo_url": None, "worktree_path": None}
    value["payload"]["output_contract"] |= {"schema_ref": None, "evaluate": None}
    assert read_wire_1_0(value) == absent


@pytest.mark.parametrize("sender", ["quinn", "quinn-03", "content_writer", "system", "human", "runner"])
def test_senders_of_the_seed_are_read(sender: str) -> None:
    assert read_wire_1_0({**_load("claim.valid.json"), "sender": sender}).sender == sender


@pytest.mark.parametrize("sender", ["agent:quinn", "Quinn", "", "x" * 33, "quinn smith"])
def test_other_senders_are_refused(sender: str) -> None:
    findings = validate_wire_1_0({**_load("claim.valid.json"), "sender": sender})
    assert {finding.pointer for finding in findings} == {"/sender"}


def test_a_whole_number_may_be_written_as_a_float() -> None:
    value = _load("inbox.valid.json")
    value["payload"]["priority"] = 2.0
    payload = read_wire_1_0(value).payload
    assert isinstance(payload, Inbox)
    assert payload.priority == 2


@pytest.mark.parametrize("version", ["1.1", "2.0", "", None, 1.0, 1, [], {}, "1" * 5000])
def test_another_version_is_refused_and_the_known_ones_are_named(version: Any) -> None:
    (finding,) = validate_wire_1_0({**_load("claim.valid.json"), "wire": version})
    assert (finding.code, finding.pointer) == ("unknown_version", "/wire")
    assert "known: 1.0, 1.1" in finding.message
    assert len(finding.message) < 120


def test_another_type_is_refused_and_the_known_ones_are_named() -> None:
    (finding,) = validate_wire_1_0({**_load("claim.valid.json"), "type": "gossip"})
    assert (finding.code, finding.pointer) == ("unknown_type", "/type")
    assert "brief, inbox, complete, blocked, claim" in finding.message


@pytest.mark.parametrize("value", [None, True, 7, "brief", [], [{}], {}])
def test_what_is_no_message_at_all_is_refused(value: Any) -> None:
    with pytest.raises(WireRefused):
        read_wire_1_0(value)


@pytest.mark.parametrize(
    ("ts", "expected"),
    [
        ("2026-04-28T00:00:00Z", "2026-04-28T00:00:00Z"),
        ("2026-04-28T00:00:00.123456789Z", "2026-04-28T00:00:00.123456789Z"),
        ("2026-01-01T00:30:00+02:00", "2025-12-31T22:30:00Z"),
        ("2026-12-31T23:30:00.5-01:00", "2027-01-01T00:30:00.5Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_in_utc(ts: str, expected: str) -> None:
    assert utc(ts) == expected


@pytest.mark.parametrize("ts", ["2026-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:00:00-02:00", "now"])
def test_a_time_that_never_was_has_no_utc(ts: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        utc(ts)


def test_forms_cannot_be_changed() -> None:
    payload = read_wire_1_0(_load("claim.valid.json")).payload
    assert isinstance(payload, Claim)
    with pytest.raises(AttributeError):
        payload.agent = "somebody-else"  # type: ignore[misc]
