"""Hypothesis strategies: valid wires of every event type, generated from the schemas, and wires with wrong values."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from redkey.wire.canonical import canonical
from redkey.wire.envelope import AnyWire
from redkey.wire.ids import SUBJECT_FIELD, parse_stream
from redkey.wire.validate import MESSAGE_LIMIT
from tests.wire.arbitrary import json_values
from tools.largest import _other
from tools.shapes import event_shape

Wire = dict[str, Any]
_LINEAGE = ("correlation_id", "reference_task_ids", "parent_task_id")
_ENTRIES = ("roles", "capabilities", "waits_for", "outputs")


def values(shape: Any) -> st.SearchStrategy[Any]:
    """Values that match a flat schema, except for its conditions."""
    if "const" in shape:
        return st.just(shape["const"])
    if "enum" in shape:
        return st.sampled_from(shape["enum"])
    if "oneOf" in shape or "anyOf" in shape:
        return st.one_of([values(part) for part in shape.get("oneOf") or shape["anyOf"]])
    match shape["type"]:
        case "string":
            texts = st.from_regex(shape["pattern"].removeprefix("^").removesuffix("$"), fullmatch=True)
            return texts.filter(lambda text: shape.get("minLength", 0) <= len(text) <= shape["maxLength"])
        case "integer":
            return st.integers(shape["minimum"], shape["maximum"])
        case "number":
            return st.integers(shape["minimum"], shape["maximum"]) | st.floats(shape["minimum"], shape["maximum"])
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(
                values(shape["items"]), min_size=shape.get("minItems", 0), max_size=shape["maxItems"], unique=True
            )
    if "properties" not in shape:
        keys = values({"type": "string", "maxLength": 40, **shape["propertyNames"]})
        plain = st.text("aé🙂 ", max_size=20) | st.integers(-9, 2**53 - 1) | st.booleans() | st.just(0.5)
        inner = plain | st.none()
        return st.dictionaries(keys, plain | st.lists(inner, max_size=3) | st.just({"b": {"a": None}}), max_size=2)
    fields = {name: values(part) for name, part in shape["properties"].items() if part is not False}
    required = {name: fields.pop(name) for name in shape.get("required", ()) if name in fields}
    return st.fixed_dictionaries(required, optional=fields)


@st.composite
def valid_wires(draw: st.DrawFn, event: str) -> Wire:
    """A valid wire of the type, as JSON values."""
    shape = event_shape(event)
    wire: Wire = draw(values(shape))
    _meet_conditions(wire["payload"], shape["properties"]["payload"])
    _agree(wire)
    # What gives way when a wire is full.
    for part, name in ((wire, "extensions"), (wire["payload"], "uri"), *((wire["stream"], one) for one in _LINEAGE)):
        if len(canonical(wire)) > MESSAGE_LIMIT:
            part.pop(name, None)
    return wire


def _meet_conditions(payload: Wire, shape: Any) -> None:
    """Drop fields that other fields exclude, and fields whose required companions are missing."""
    for name, others in shape.get("dependentRequired", {}).items():
        if any(other not in payload for other in others):
            payload.pop(name, None)
    for condition in shape.get("conditions", ()):
        (trigger,) = condition["if"]["required"]
        if trigger in payload and any(name not in payload for name in condition["then"].get("required", ())):
            del payload[trigger]
        if trigger in payload:
            for name in condition["then"].get("properties", {}):
                payload.pop(name, None)


def _agree(wire: Wire) -> None:
    """Make the fields consistent, as the rules require that no schema can express."""
    payload, stream = wire["payload"], wire["stream"]
    place = parse_stream(stream["stream_id"])
    if SUBJECT_FIELD.get(place.kind) in payload:
        payload[SUBJECT_FIELD[place.kind]] = place.subject
    if place.attempt and "attempt" in payload:
        payload["attempt"] = place.attempt
    if stream.get("causation_id") == wire["wire_id"]:
        del stream["causation_id"]
    if "winning_claim_id" in payload:
        payload["winning_claim_id"] = _other(payload["claim_id"])
    if "depends_on" in payload and place.subject in payload["depends_on"]:
        payload["depends_on"] = ["0.0.1" if place.subject != "0.0.1" else "0.0.2"]
    for holder, name in ((wire, "ts"), (payload, "lease_expires_at")):
        if name in holder:
            holder[name] = "2024-02-29" + holder[name][10:]
    if wire["type"] == "inbox.sent":
        payload["to"] = stream["stream_id"] if place.kind == "agent" else "human"
    if wire["type"] == "gate.opened" and place.kind == "queue":
        payload.pop("workflow_id", None)
    if wire["type"] == "task.complete":
        payload.pop("unverified", None)
        if "manifest_ref" in payload:
            payload["artifact_ids"] = []
        payload["artifact_ids"] = payload["artifact_ids"][:4]
    if wire["type"] == "artifact.ready" and len(payload.get("derived_from", ())) > 2:
        payload["derived_from"] = payload["derived_from"][:2]
    if wire["type"] == "task.failed" and "claim_id" not in payload:
        payload["kind"] = "deadline"
    if wire["type"] == "task.created":
        for name in _ENTRIES:
            if name in payload:
                payload[name] = [one for one in payload[name][:1] if one != place.subject]
        for name in ("reference_task_ids", "parent_task_id"):
            stream.pop(name, None)
        payload.pop("retry_of", None)
        if place.attempt > 1:
            payload["retry_of"] = place.attempt - 1


@st.composite
def wrong_wires(draw: st.DrawFn, wire: AnyWire) -> AnyWire:
    """The wire with any value in one or two fields of the envelope, the stream or the payload."""
    for _ in range(draw(st.integers(1, 2))):
        part = draw(st.sampled_from(["payload", "payload", "stream", "wire"]))
        holder: Any = wire if part == "wire" else getattr(wire, part)
        names = [name for name in holder.__struct_fields__ if name not in ("payload", "stream", "type")]
        if not names:
            continue
        name = draw(st.sampled_from(names))
        value = draw(json_values | st.none() | st.sampled_from(_near(getattr(holder, name))))
        changed = msgspec.structs.replace(holder, **{name: value})
        wire = changed if part == "wire" else msgspec.structs.replace(wire, **{part: changed})
    return wire


def _near(value: Any) -> list[Any]:
    """Values that are almost valid."""
    if isinstance(value, str):
        return [value + "\n", value[:-1], value + "0", value.upper(), '"' + value, value.replace("0", "O")]
    if isinstance(value, int):
        return [value + 1, -value, float(value), not value, str(value)]
    return [(), (value,), value]
