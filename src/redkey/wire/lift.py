"""Lift older and looser wires to Agent Wire 1.1: a tolerant reader in front of a strict ledger.

- 1.0 messages become 1.1 wires; free text in them becomes content that the wires name by hash.
- A flat 1.1 wire (`stream_id` and related fields at top level, no `state`) is nested.
- `task.claim`, the name before 1.1, reads as `task.claimed`.
- A holder's wire without its claim (as seed 001 shows `task.started`) gets the claim that its agent has in this log.

Every lifted wire is valid by the 1.1 schemas. What 1.1 cannot express is listed as lost; what 1.1 needs and
the older form lacks is listed as assumed. Lifting is pure: the same messages give the same bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from redkey.errors import Finding, WireRefused
from redkey.wire import files, lifted
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import SCHEMAS, VERSION, catalogue
from redkey.wire.lift_legacy import lift_legacy
from redkey.wire.lifted import Content, Lifted, Log
from redkey.wire.validate import drop_nulls, too_large, validate

__all__ = ["Content", "Lifted", "Log", "lift"]
# The event types that a holder writes about its own claim.
_HELD = frozenset(
    {"task.started", "task.progress", "task.plan.created", "task.released", "task.blocked", "task.complete"}
    | {"artifact.ready", "task.failed"}
)


def lift(value: Any, log: Log | None = None) -> Lifted:
    """Lift a decoded wire of any known version to 1.1; raise WireRefused if it is not a wire or cannot be lifted."""
    log = log or Log()
    if isinstance(value, dict) and value.get("wire") == VERSION:
        found = _lift_loose(value, log)
    else:
        if isinstance(value, dict) and value.get("type") == "task.claim":
            value = {**value, "type": "claim"}
        found = lift_legacy(value, log)
    for wire in found.wires:
        findings = validate(wire) or too_large(canonical(wire))
        if findings:
            raise WireRefused(findings)
    return found


def _lift_loose(value: dict[str, Any], log: Log) -> Lifted:
    wire = drop_nulls(value)  # Copy the wire, its stream and its payload: the caller's wire must not change.
    lost: list[Finding] = []
    assumed: list[Finding] = []
    if wire.get("type") == "task.claim":
        wire["type"] = "task.claimed"
        _name_claim(wire, log, assumed)
    _nest_stream(wire, lost)
    _drop_cause(wire, lost)
    _add_claim(wire, log, assumed)
    event = catalogue().get(wire["type"]) if isinstance(wire.get("type"), str) else None
    if event is not None and event.state is not None:
        wire.setdefault("state", event.state)
    if isinstance(wire.get("wire_id"), str) and not lifted.fits("wire_id", wire["wire_id"]):
        text = f"{wire['wire_id'][:64]!r} is not a wire id of 1.1; the new id is a hash of the wire's bytes"
        lost.append(lifted.lost("/wire_id", text))
        wire["wire_id"] = lifted.hashed("wire", canonical(value))
    return Lifted((wire,), lost=tuple(lost), assumed=tuple(assumed))


def _nest_stream(wire: dict[str, Any], lost: list[Finding]) -> None:
    stream = wire.get("stream", {})
    if not isinstance(stream, dict):
        return
    for name in _stream_fields():
        if name in wire:
            flat = wire.pop(name)
            if stream.setdefault(name, flat) != flat:
                text = f"{name} is also in the stream, with another value, which is kept"
                lost.append(lifted.lost(f"/{name}", text))
    # The correlation id is the context by default; 1.1 writes it only if the two differ.
    correlation = stream.get("correlation_id")
    if correlation is not None and stream.setdefault("context_id", correlation) == correlation:
        del stream["correlation_id"]
    if stream:
        wire["stream"] = stream


def _drop_cause(wire: dict[str, Any], lost: list[Finding]) -> None:
    """Drop a cause that is not a wire id of 1.1, because it cannot name a wire."""
    stream = wire.get("stream")
    cause = stream.get("causation_id") if isinstance(stream, dict) else None
    if isinstance(stream, dict) and isinstance(cause, str) and not lifted.fits("wire_id", cause):
        del stream["causation_id"]
        lost.append(lifted.lost("/stream/causation_id", f"{cause[:64]!r} is not a wire id of 1.1"))


def _add_claim(wire: dict[str, Any], log: Log, assumed: list[Finding]) -> None:
    """Add the missing claim id to a holder's wire: the claim that its sender has in this log."""
    payload, sender, stream = wire.get("payload"), wire.get("sender"), wire.get("stream")
    event = wire.get("type")
    if not isinstance(event, str) or event not in _HELD or not isinstance(payload, dict) or "claim_id" in payload:
        return
    if not isinstance(stream, dict) or not isinstance(sender, str) or not sender.startswith("agent:"):
        return
    place = str(stream.get("stream_id", "")).split(":")
    if len(place) != 4 or place[0] != "task":
        return
    agent = payload.setdefault("agent_id", lifted.agent_id(sender.removeprefix("agent:")))
    turn = log.claims.get((place[1], str(agent)), 0)
    payload["claim_id"] = lifted.claim_id(place[1], str(agent), max(turn, 1))
    text = "a holder's wire names its claim; this claim id is derived from the task and the agent"
    assumed.append(lifted.assumed("/payload/claim_id", text))


def _name_claim(wire: dict[str, Any], log: Log, assumed: list[Finding]) -> None:
    """Rename the payload fields of a `task.claim` as in 1.1; the schema checks the others."""
    payload = wire.get("payload")
    if not isinstance(payload, dict):
        return
    if isinstance(payload.get("agent"), str):
        payload.setdefault("agent_id", lifted.agent_id(payload.pop("agent")))
    if isinstance(payload.get("role"), str):
        payload.setdefault("role_id", lifted.role_id(payload.pop("role")))
    task_id, agent_id = payload.get("task_id"), payload.get("agent_id")
    if "claim_id" not in payload and isinstance(task_id, str) and isinstance(agent_id, str):
        hold = (task_id, agent_id)
        log.claims[hold] = log.claims.get(hold, 0) + 1
        payload["claim_id"] = lifted.claim_id(*hold, log.claims[hold])
        text = "the claim has no id; the id is derived from the task and the agent"
        assumed.append(lifted.assumed("/payload/claim_id", text))


@cache
def _stream_fields() -> tuple[str, ...]:
    return tuple(files.load(f"{SCHEMAS}/stream.schema.json")["properties"])
