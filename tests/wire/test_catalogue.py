"""The event catalogue equals the contract file."""

from __future__ import annotations

import pytest

from redkey.errors import ContractBroken
from redkey.wire import files
from redkey.wire.catalogue import CONTRACTS, FIXTURES, SCHEMAS, VERSION, catalogue, contract
from redkey.wire.ids import SUBJECT_FIELD

TABLE = files.load(f"{CONTRACTS}/event-state-map.json")
STREAM_KINDS = set(files.load(f"{SCHEMAS}/stream.schema.json")["$defs"])


def test_it_holds_what_the_contract_holds_in_its_order() -> None:
    assert list(catalogue()) == list(TABLE["events"])
    for name, event in catalogue().items():
        row = TABLE["events"][name]
        assert (event.name, event.category, list(event.streams), event.kind) == (
            name,
            row["category"],
            row["streams"],
            row["kind"],
        )


def test_a_changed_contract_changes_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {"categories": {"odd": {"state": True, "terminal": True}}}
    changed["events"] = {"task.odd": {"schema": "odd.json", "category": "odd", "streams": ["task"], "kind": "both"}}
    monkeypatch.setattr(files, "load", lambda relative: changed)
    (event,) = catalogue.__wrapped__().values()
    assert event.state == {"category": "odd", "terminal": True}
    assert event.schema == f"{SCHEMAS}/odd.json"


@pytest.mark.parametrize("event", catalogue().values(), ids=lambda event: event.name)
def test_every_row_makes_sense(event: object) -> None:
    kind = catalogue()[event.name]  # type: ignore[attr-defined]
    assert set(kind.streams) <= STREAM_KINDS
    assert kind.streams
    assert kind.kind in ("request", "derived", "both")
    assert kind.terminal <= kind.has_state
    assert (files.root() / kind.schema).is_file()


@pytest.mark.parametrize("name", ["event-state-map", "task-state-machine", "a2a-task-state-map"])
def test_contracts_say_what_they_are(name: str) -> None:
    loaded = contract(f"{name}.json")
    assert loaded["contract"] == name
    assert loaded["wire"] == VERSION
    assert loaded["about"]


def test_every_stream_kind_of_an_event_has_a_subject_field() -> None:
    used = {kind for event in catalogue().values() for kind in event.streams}
    assert used == SUBJECT_FIELD.keys()


def test_a_contract_that_is_missing_is_a_broken_installation() -> None:
    with pytest.raises(ContractBroken, match=r"nothing\.json"):
        contract("nothing.json")


def test_a_contract_that_is_no_json_is_a_broken_installation() -> None:
    with pytest.raises(ContractBroken, match=r"README\.md"):
        files.load(f"{FIXTURES}/README.md")


def test_requests_carry_idempotency_and_derived_wires_do_not() -> None:
    # What the fold derives is named by its cause; nobody can send it twice by a retry.
    for name, event in catalogue().items():
        fields = files.load(event.schema)["properties"]["payload"]["properties"]
        assert ("idem" in fields) == ("body" in fields)
        assert ("idem" in fields) == (event.kind != "derived"), name
