"""Event structs: they match the schemas, and encode to the canonical bytes of their wires."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import JsonRefused, UpgradeNeeded, WireRefused
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, SCHEMAS, catalogue
from redkey.wire.envelope import STATES, AnyWire, Wire, wire_from, wire_of
from redkey.wire.events import PAYLOADS, Ref, TaskClaimed, TaskComplete, WireState, WireStream
from redkey.wire.validate import encode, read, read_wire, validate
from tests.wire.derive import ways
from tests.wire.schema_wires import valid_wires, wrong_wires
from tools.derive import file_stem, golden
from tools.events import NAMING, class_name
from tools.largest import largest
from tools.shapes import event_shape, schema_shape

EVENTS = list(catalogue())
VALID = [wire for event in EVENTS for wire in (*golden(event), *largest(event))]


def _typed(value: Any) -> AnyWire:
    return wire_of(canonical(value))


def _check_fields(struct: type[msgspec.Struct], shape: Any) -> None:
    """The struct has the fields of the schema in canonical order, with the same required ones."""
    fields = msgspec.structs.fields(struct)
    names = [name for name, part in shape.get("properties", {}).items() if part is not False]
    assert [field.name for field in fields] == sorted(names)
    assert {field.name for field in fields if field.required} == set(shape.get("required", ()))
    assert all(field.required or field.default is None for field in fields)


@pytest.mark.parametrize("event", EVENTS)
def test_a_struct_has_the_fields_of_its_schema(event: str) -> None:
    struct, shape = PAYLOADS[event], event_shape(event)["properties"]["payload"]
    assert (struct.__name__, struct.TYPE) == (class_name(event), event)
    _check_fields(struct, shape)
    assert ("idem" in shape.get("properties", {})) == struct.KEYED
    state = STATES[event]
    assert (msgspec.to_builtins(state) if state is not None else None) == catalogue()[event].state
    assert " ".join((struct.__doc__ or "").split()) == files.load(catalogue()[event].schema)["description"]


def test_the_envelope_and_its_parts_have_the_fields_of_their_schemas() -> None:
    _check_fields(Wire, schema_shape(f"{SCHEMAS}/envelope.schema.json"))
    _check_fields(WireStream, schema_shape(f"{SCHEMAS}/stream.schema.json"))
    _check_fields(WireState, schema_shape(f"{SCHEMAS}/state.schema.json"))
    _check_fields(Ref, schema_shape(f"{SCHEMAS}/types.schema.json#/$defs/ref"))


@pytest.mark.parametrize("value", VALID, ids=lambda value: value["type"])
def test_a_valid_wire_is_the_same_as_struct_as_bytes_and_as_json(value: Any) -> None:
    _check_same(value)


@given(st.sampled_from(EVENTS).flatmap(valid_wires))
def test_what_the_schemas_allow_is_the_same_as_struct_as_bytes_and_as_json(value: Any) -> None:
    assert validate(value) == []
    _check_same(value)


def _check_same(value: Any) -> None:
    data = canonical(value)
    wire = wire_of(data)
    assert isinstance(wire.payload, PAYLOADS[value["type"]])
    assert encode(wire) == (data, [])
    assert canonical(wire.as_json()) == data
    assert wire_from(value) == wire == read_wire(data)
    # Keys in another order: the same wire, and the strict reader takes it too.
    shuffled = orjson.dumps(dict(reversed(value.items())))
    assert wire_of(shuffled) == wire == read_wire(shuffled)


@pytest.mark.parametrize("event", EVENTS)
def test_the_encoder_refuses_what_the_schema_refuses(event: str) -> None:
    """Every violation of the schema that a struct can represent is refused."""
    held = 0
    for way in ways(catalogue()[event].schema, golden(event)[0]):
        try:
            wire = wire_from(way.document)
            same = canonical(wire.as_json()) == canonical(way.document)
        except (KeyError, TypeError, UpgradeNeeded, msgspec.ValidationError, JsonRefused):
            continue  # A field is missing or of another type, or its value is not JSON: there is no such struct.
        if same:
            held += 1
            assert encode(wire)[1] == validate(way.document) != []
    assert held


@given(st.sampled_from(VALID).map(_typed).flatmap(wrong_wires))
def test_the_encoder_gives_canonical_bytes_and_the_validators_answer(wire: AnyWire) -> None:
    value = msgspec.to_builtins(wire)
    try:
        message = canonical(value)
    except JsonRefused as refused:
        with pytest.raises(JsonRefused, match=re.escape(refused.message)):
            encode(wire)
    else:
        assert encode(wire) == (message, validate(value))


@pytest.mark.parametrize("event", EVENTS)
def test_the_subjects_of_a_payload_are_its_naming_fields(event: str) -> None:
    for value in (*golden(event), *largest(event)):
        payload = value["payload"]
        named = [name for name in _typed(value).payload.named() if name is not None]
        assert named == [payload[field] for field in NAMING if field in payload]


def test_bytes_that_end_like_another_type_are_read_by_their_own() -> None:
    value = files.load(f"{FIXTURES}/{file_stem('task.claimed')}.valid.json")
    tail = f'"x":"task.complete","wire":"1.1","wire_id":"{value["wire_id"]}"}}'
    first = {key: value[key] for key in ("type", "payload", "sender", "state", "stream", "ts")}
    wire = wire_of(orjson.dumps(first)[:-1] + b"," + tail.encode())
    assert isinstance(wire.payload, TaskClaimed)


def test_an_unknown_type_differs_from_bytes_that_are_not_a_wire() -> None:
    value = files.load(f"{FIXTURES}/task-claimed.valid.json")
    with pytest.raises(UpgradeNeeded):
        wire_of(canonical({**value, "type": "task.dreamt"}))
    with pytest.raises(UpgradeNeeded):
        wire_from({**value, "type": "task.dreamt"})
    for data in (b"", b"[]", b"{}", b"\xff", canonical({**value, "type": "task.dreamt"}), canonical(value)[:-1]):
        with pytest.raises((JsonRefused, WireRefused)) as typed:
            read_wire(data)
        with pytest.raises((JsonRefused, WireRefused)) as plain:
            read(data)
        assert (type(typed.value), str(typed.value)) == (type(plain.value), str(plain.value))


def test_a_wire_that_breaks_a_rule_is_refused_when_it_is_read() -> None:
    value = files.load(f"{FIXTURES}/task-claimed.valid.json")
    value["stream"]["causation_id"] = value["wire_id"]
    with pytest.raises(WireRefused):
        read_wire(canonical(value))


def test_whole_numbers_may_come_as_fractions_and_leave_as_the_rfc_writes_them() -> None:
    value = files.load(f"{FIXTURES}/task-complete.valid.json")
    value["payload"] |= {"cost_usd": 2.0, "duration_seconds": 7.0}
    wire = wire_from(value)
    assert isinstance(wire.payload, TaskComplete)
    assert wire.payload.duration_seconds == 7
    message, findings = encode(wire)
    assert not findings
    assert b'"cost_usd":2,"duration_seconds":7,' in message
