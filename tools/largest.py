"""The largest legal wire of every event type, built from its schema: every optional field, every bound reached.

Where a type has alternatives (fields that exclude each other, kinds of stream) there is one wire for each. The
rules that no schema can express, such as a payload that must agree with its stream, are applied in `_agree`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from redkey.wire.canonical import canonical
from redkey.wire.ids import SUBJECT_FIELD, parse_stream
from redkey.wire.rules import ENTRIES_LIMIT
from tools.longest import longest
from tools.shapes import event_shape

Wire = dict[str, Any]

# No double between 0 and a million has a longer canonical form.
_LONGEST_FRACTION = 2.2250738585072014e-308
_ENTRY_LISTS = ("roles", "capabilities", "waits_for", "outputs")


def largest(event: str) -> list[Wire]:
    """Return the largest wire for each alternative of the type."""
    shape = event_shape(event)
    stream = shape["properties"]["stream"]["properties"]["stream_id"]
    found = []
    for kept, place in product(_alternatives(shape["properties"]["payload"]), stream.get("anyOf", [stream])):
        wire = build(shape)
        wire["payload"] = {name: part for name, part in wire["payload"].items() if name in kept}
        wire["stream"]["stream_id"] = longest(place["pattern"], place["maxLength"])
        found.append(max(_agree(wire), key=lambda agreed: len(canonical(agreed))))
    return found


def build(shape: dict[str, Any], variant: int = 0) -> Any:
    """Build the largest value of a flat schema; `variant` selects another of the same size."""
    if "const" in shape:
        return shape["const"]
    if "enum" in shape:
        return sorted(shape["enum"], key=lambda member: -len(canonical(member)))[variant]
    if "oneOf" in shape or "anyOf" in shape:
        return max((build(part, variant) for part in shape.get("oneOf") or shape["anyOf"]), key=_size)
    match shape["type"]:
        case "string":
            return longest(shape["pattern"], shape["maxLength"], variant)
        case "integer":
            return max(shape["maximum"], shape["minimum"], key=_size)
        case "number":
            return _LONGEST_FRACTION
        case "boolean":
            return False
        case "array":
            return [build(shape["items"], index) for index in range(shape["maxItems"])]
        case "object" if "properties" in shape:
            return {name: build(part) for name, part in shape["properties"].items() if part is not False}
        case "object":
            names, parts = shape["propertyNames"], shape["additionalProperties"]
            return {
                longest(names["pattern"], names["maxLength"], index): build(parts)
                for index in range(shape["maxProperties"])
            }
    raise NotImplementedError(shape["type"])


def _size(value: Any) -> int:
    return len(canonical(value))


def _alternatives(payload: dict[str, Any]) -> list[set[str]]:
    """Return the largest sets of payload fields that are allowed together."""
    every = {name for name, part in payload["properties"].items() if part is not False}
    conditions = payload.get("conditions", [])
    deciding = sorted({name for condition in conditions for name in condition["if"]["required"]})
    found: list[set[str]] = []
    for chosen in product((True, False), repeat=len(deciding)):
        kept = every - {name for name, is_kept in zip(deciding, chosen, strict=True) if not is_kept}
        for condition in conditions:
            if set(condition["if"]["required"]) <= kept:
                then = condition["then"]
                kept -= {name for name, part in then.get("properties", {}).items() if part is False}
        if _holds(kept, conditions) and not any(kept <= other for other in found):
            found.append(kept)
    return found


def _holds(kept: set[str], conditions: list[dict[str, Any]]) -> bool:
    met = [condition["then"] for condition in conditions if set(condition["if"]["required"]) <= kept]
    return all(set(then.get("required", ())) <= kept for then in met)


def _agree(wire: Wire) -> Iterator[Wire]:
    """Yield the wire with fields that agree; several wires if there are several ways."""
    payload, stream = wire["payload"], wire["stream"]
    place = parse_stream(stream["stream_id"])
    field = SUBJECT_FIELD.get(place.kind)
    if field in payload:
        payload[field] = place.subject
    if place.attempt and "attempt" in payload:
        payload["attempt"] = place.attempt
    if "causation_id" in stream:
        stream["causation_id"] = _other(wire["wire_id"])
    if "winning_claim_id" in payload:
        payload["winning_claim_id"] = _other(payload["claim_id"])
    for name in ("waits_for", "depends_on"):
        payload.update({name: [_other(task_id) for task_id in payload[name]]} if name in payload else {})
    if "parent_task_id" in stream:
        stream["parent_task_id"] = _other(stream["parent_task_id"])
    if "retry_of" in payload:
        payload["retry_of"] = place.attempt - 1
    if "to" in payload:
        payload["to"] = stream["stream_id"] if place.kind == "agent" else payload["to"].replace("agent:", "human:")
    if wire["type"] == "gate.opened" and place.kind == "queue":
        del payload["workflow_id"]
    for name, text in (("ts", wire["ts"]), ("lease_expires_at", payload.get("lease_expires_at"))):
        if text is not None:
            (wire if name == "ts" else payload)[name] = "9999-12-31" + text[10:]
    if wire["type"] == "task.created":
        yield from _share_entries(wire)
    else:
        yield wire


def _other(identifier: str) -> str:
    """Return another id of the same length."""
    return identifier[:-2] + ("Y" if identifier[-2] == "Z" else "Z") + identifier[-1]


def _share_entries(wire: Wire) -> Iterator[Wire]:
    """Yield every way to distribute the entries of a task.created over its lists, references and parent."""
    payload, stream = wire["payload"], wire["stream"]
    lists = [(payload, name) for name in _ENTRY_LISTS if name in payload] + [(stream, "reference_task_ids")]
    sizes = [range(len(holder[name]) + 1) for holder, name in lists]
    for *counts, parents in product(*sizes, range(2)):
        if sum(counts) + parents != ENTRIES_LIMIT:
            continue
        shared = {**wire, "payload": dict(payload), "stream": dict(stream)}
        for (holder, name), count in zip(lists, counts, strict=True):
            shared["payload" if holder is payload else "stream"][name] = holder[name][:count]
        if not parents:
            del shared["stream"]["parent_task_id"]
        yield shared
