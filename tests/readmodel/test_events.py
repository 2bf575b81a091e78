"""Events are shown from typed wires as `ledger.event`, which verifies receipts, says that they must look."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redkey.ledger.event import event_at
from redkey.readmodel.events import show
from redkey.shapes.fields import camel
from redkey.wire import files
from redkey.wire.envelope import wire_from
from redkey.wire.ids import SUBJECT_FIELD, parse_stream

_FOLDER = "fixtures/agent-wire/v1.1"
_VALUES = [files.load(f"{_FOLDER}/{name}") for name in files.names(_FOLDER, ".valid.json")]
_WIRES = [value for value in _VALUES if "wire_id" in value]


def _renamed(value: Any) -> Any:
    return {camel(name): _renamed(item) for name, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("sender", ["", "agent:other", "system", "human:ann"])
def test_typed_wires_are_shown_as_receipts_are_held_to(sender: str) -> None:
    assert len(_WIRES) > 40
    for wire in _WIRES:
        _hold_to_receipts(wire | ({"sender": sender} if sender else {}))


def _hold_to_receipts(value: dict[str, Any]) -> None:
    head, event = event_at(value, 7, 5), show(wire_from(value), 7, 5)
    fields = ("event_id", "type", "sequence", "timestamp", "actor", "subject")
    assert [getattr(event, field) for field in fields] == [getattr(head, field) for field in fields]
    stream = parse_stream(value["stream"]["stream_id"])
    expected = {camel(SUBJECT_FIELD[stream.kind]): stream.subject} if stream.kind in SUBJECT_FIELD else {}
    expected |= {"attempt": stream.attempt} if stream.attempt else {}
    expected |= {camel(field): _renamed(item) for field, item in value["payload"].items() if item is not None}
    expected = {field: item for field, item in expected.items() if field not in ("idem", "body")}
    assert msgspec.json.decode(msgspec.json.encode(event.data)) == expected
