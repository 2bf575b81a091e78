"""The rules of Agent Wire 1.1 that no schema can hold: what the fields of one wire say of each other.

They are asked after the schema (`validate`), of wires that fit it. What one wire says of another is the
reducers' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from redkey.errors import Finding
from redkey.wire.catalogue import EventType
from redkey.wire.ids import SUBJECT_FIELD, Stream, parse_stream

# The lists of one task.created, its references and its parent have so many entries together.
ENTRIES_LIMIT = 4
_LISTS = frozenset({"roles", "capabilities", "waits_for", "outputs"})
_LINEAGE = frozenset({"reference_task_ids", "parent_task_id"})
# Failures that no holder reports.
SYSTEM_FAILURES = frozenset({"deadline", "lease_losses", "dependency_failed"})


Wire = dict[str, Any]
Rule = Callable[[Wire], list[Finding]]


def rules_of(event: EventType) -> Rule:
    """All rules of one type as one function: what is wrong with a wire that fits the type's schema."""
    # The payload fields that may repeat what the stream id says; only those of tasks say an attempt.
    repeated = frozenset(SUBJECT_FIELD[kind] for kind in event.streams)
    if "task" in event.streams:
        repeated |= {"attempt"}
    own = _RULES.get(event.name)

    def broken(wire: Wire) -> list[Finding]:
        found: list[Finding] = []
        stream, ts = wire["stream"], wire["ts"]
        if not repeated.isdisjoint(wire["payload"]):
            found += _check_repeated(wire["payload"], parse_stream(stream["stream_id"]))
        if stream.get("causation_id") == wire["wire_id"]:
            found.append(Finding("own_cause", "/stream/causation_id", "a wire cannot be its own cause"))
        if _is_rare(ts):
            found += _check_time("/ts", ts)
        if own is not None:
            found += own(wire)
        return found

    return broken


def _check_repeated(payload: Wire, place: Stream) -> list[Finding]:
    found = []
    for field, said in ((SUBJECT_FIELD[place.kind], place.subject), ("attempt", place.attempt)):
        if said and payload.get(field, said) != said:
            text = f"the stream id says {said}; the payload must say the same or nothing"
            found.append(Finding("stream_mismatch", f"/payload/{field}", text))
    return found


def _is_rare(time: str) -> bool:
    """True for the times that a schema lets through and no calendar may have: the ends of months, and the year 0."""
    return time[8:10] > "28" or time[:4] == "0000"


def _check_time(where: str, text: str) -> list[Finding]:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return [Finding("no_such_time", where, f"there is no such time as {text}")]
    return []


def _check_lease(wire: Wire) -> list[Finding]:
    until = wire["payload"].get("lease_expires_at")
    return _check_time("/payload/lease_expires_at", until) if until and _is_rare(until) else []


def _check_created(wire: Wire) -> list[Finding]:
    payload, stream = wire["payload"], wire["stream"]
    found = _check_entries(wire) if not (_LISTS.isdisjoint(payload) and _LINEAGE.isdisjoint(stream)) else []
    if "retry_of" in payload or not stream["stream_id"].endswith(":attempt:1"):
        found += _check_retry(payload.get("retry_of"), parse_stream(stream["stream_id"]).attempt)
    return found


def _check_entries(wire: Wire) -> list[Finding]:
    payload, stream = wire["payload"], wire["stream"]
    found = _check_dependencies(wire, "waits_for") if "waits_for" in payload else []
    if "parent_task_id" in stream and stream["parent_task_id"] == parse_stream(stream["stream_id"]).subject:
        found.append(Finding("own_dependency", "/stream/parent_task_id", "a task cannot be its own parent"))
    entries = sum(len(payload[name]) for name in _LISTS if name in payload)
    entries += len(stream.get("reference_task_ids", ())) + ("parent_task_id" in stream)
    if entries > ENTRIES_LIMIT:
        text = f"{entries} roles, capabilities, dependencies, outputs, references and parent; a wire has room for"
        text += f" {ENTRIES_LIMIT}: name what the task asks for in a structure_ref"
        found.append(Finding("entries_too_many", "/payload", text))
    return found


def _check_retry(retry_of: int | None, attempt: int) -> list[Finding]:
    expected = attempt - 1 or None
    if retry_of == expected:
        return []
    text = f"attempt {attempt} retries attempt {expected}" if expected else "a first attempt retries nothing"
    return [Finding("retry_of_mismatch", "/payload/retry_of", text)]


def _check_blocked(wire: Wire) -> list[Finding]:
    return _check_dependencies(wire, "depends_on") if "depends_on" in wire["payload"] else []


def _check_dependencies(wire: Wire, field: str) -> list[Finding]:
    task_id, task_ids = parse_stream(wire["stream"]["stream_id"]).subject, wire["payload"][field]
    if task_id not in task_ids:
        return []
    where = f"/payload/{field}/{task_ids.index(task_id)}"
    return [Finding("own_dependency", where, "a task cannot wait for itself")]


def _check_failed(wire: Wire) -> list[Finding]:
    if wire["payload"]["kind"] in SYSTEM_FAILURES or "claim_id" in wire["payload"]:
        return []
    return [Finding("claim_id_missing", "/payload/claim_id", "a failure that a holder reports names its claim")]


def _check_missed(wire: Wire) -> list[Finding]:
    if wire["payload"]["winning_claim_id"] != wire["payload"]["claim_id"]:
        return []
    return [Finding("own_winner", "/payload/winning_claim_id", "a claim cannot be missed because of itself")]


def _check_gate(wire: Wire) -> list[Finding]:
    if wire["stream"]["stream_id"].startswith("workflow:") or "workflow_id" not in wire["payload"]:
        return []
    text = "a gate of a workflow stands on the workflow's stream, not on a queue's"
    return [Finding("stream_mismatch", "/payload/workflow_id", text)]


def _check_mail(wire: Wire) -> list[Finding]:
    stream_id, to = wire["stream"]["stream_id"], wire["payload"]["to"]
    if stream_id == to or (stream_id.startswith("workspace:") and not to.startswith("agent:")):
        return []
    text = "mail to an agent stands on that agent's stream, other mail on the workspace's"
    return [Finding("stream_mismatch", "/payload/to", text)]


_RULES: Mapping[str, Rule] = {
    "task.created": _check_created,
    "task.claimed": _check_lease,
    "task.lease_extended": _check_lease,
    "task.claim_missed": _check_missed,
    "task.blocked": _check_blocked,
    "task.failed": _check_failed,
    "gate.opened": _check_gate,
    "inbox.sent": _check_mail,
}
