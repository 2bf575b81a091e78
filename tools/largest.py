"""The largest legal wire of every event type, built from its schema: every limit reached, and 1,024 bytes filled.

The core of a wire (what the server can neither leave out nor replace by a ref) reaches every limit and must fit;
otherwise `largest` raises. The optional parts, which a ledger may drop, are added as far as they fit; extensions fill
the rest to the last byte. If a type has alternatives (fields that exclude each other, kinds of stream) there is one
wire for each. `_agree` applies the rules that no schema can express, such as a payload that must match its stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from redkey.wire.canonical import canonical
from redkey.wire.ids import SUBJECT_FIELD, parse_stream
from redkey.wire.rules import ENTRIES_LIMIT
from redkey.wire.validate import MESSAGE_LIMIT
from tools.longest import longest
from tools.shapes import event_shape

Wire = dict[str, Any]

# No double between 0 and a million has a longer canonical form.
_LONGEST_FRACTION = 2.2250738585072014e-308
_ENTRY_LISTS = ("roles", "capabilities", "waits_for", "outputs")
# The parts that may be dropped when a wire is full, in the order in which they are added here.
_ELASTIC = (
    ("payload", "artifact_ids"),
    ("payload", "unverified"),
    ("stream", "parent_task_id"),
    ("stream", "reference_task_ids"),
    ("stream", "correlation_id"),
    ("payload", "derived_from"),
    ("payload", "uri"),
)
# For a created task these count as entries and share the room of its lists.
_ENTRIES = (("stream", "parent_task_id"), ("stream", "reference_task_ids"))


def largest(event: str) -> list[Wire]:
    """Return the largest wire for each alternative of the type."""
    return [_filled(wire) for wire in widest(event)]


def widest(event: str) -> list[Wire]:
    """Return the wire with every limit reached for each alternative of the type; it may exceed the limit of a wire."""
    shape = event_shape(event)
    stream = shape["properties"]["stream"]["properties"]["stream_id"]
    found = []
    for kept, place in product(_alternatives(shape["properties"]["payload"]), stream.get("anyOf", [stream])):
        wire = build(shape)
        wire["payload"] = {name: part for name, part in wire["payload"].items() if name in kept}
        wire["stream"]["stream_id"] = longest(place["pattern"], place["maxLength"])
        ways = list(_agree(wire))
        # A completion names its artifacts itself or by a manifest.
        found += ways if event == "task.complete" else [max(ways, key=_size)]
    return found


def _filled(wire: Wire) -> Wire:
    """Return the wire with as many optional parts as fit, and extensions in the remaining bytes."""
    is_created, is_manifest = wire["type"] == "task.created", "manifest_ref" in wire["payload"]
    rigid = _ENTRIES if is_created else (("payload", "artifact_ids"), ("payload", "unverified")) if is_manifest else ()
    parts = [(*place, wire[place[0]].pop(place[1])) for place in _ELASTIC if place not in rigid and _is_in(wire, place)]
    wire.pop("extensions", None)
    if wire["type"] == "task.complete" and not is_manifest:
        wire["payload"]["artifact_ids"] = []
    if _size(wire) > MESSAGE_LIMIT:
        raise ValueError(f"the core of {wire['type']} has {_size(wire)} bytes")
    for part, name, value in parts:
        most = len(wire["payload"]["artifact_ids"]) if name == "unverified" else len(value)
        sizes = range(most, 0, -1) if isinstance(value, list) else (None,)
        for size in sizes:
            wider = {**wire, part: wire[part] | {name: value[:size]}}
            if _size(wider) <= MESSAGE_LIMIT:
                wire = wider
                break
    room = MESSAGE_LIMIT - _size({**wire, "extensions": {"redkey.room": ""}})
    return {**wire, "extensions": {"redkey.room": "x" * room}} if room >= 0 else wire


def _is_in(wire: Wire, place: tuple[str, str]) -> bool:
    """Return whether the wire has an optional part there: text or a list."""
    return isinstance(wire[place[0]].get(place[1]), str | list)


def build(shape: dict[str, Any], variant: int = 0) -> Any:
    """Build the largest value of a flat schema; `variant` selects another value of the same size."""
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
            return {}
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
    if "by_artifact_id" in payload:
        payload["by_artifact_id"] = _other(place.subject)
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
    elif wire["type"] == "task.complete":
        payload["unverified"] = list(range(len(payload["unverified"])))
        without = {name: part for name, part in payload.items() if name != "manifest_ref"}
        by_manifest = {"artifact_ids": [], "unverified": [249 + place for place in range(1, 7)]}
        yield {**wire, "stream": dict(stream), "payload": payload | by_manifest}
        yield {**wire, "stream": dict(stream), "payload": without}
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
