"""The rules of Agent Wire 1.1 that no schema can express: how the fields of one wire must agree.

`validate` applies them to wires that match their schema. Reducers check how wires relate to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeVar

from redkey.errors import Finding
from redkey.wire.catalogue import EventType
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    PAYLOADS,
    ArtifactSuperseded,
    GateOpened,
    InboxSent,
    TaskBlocked,
    TaskClaimed,
    TaskClaimMissed,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    TaskLeaseExtended,
)
from redkey.wire.ids import SUBJECT_FIELD, Stream, parse_stream
from redkey.wire.payload import Payload

# The most entries of a task.created: its lists, its references and its parent together.
ENTRIES_LIMIT = 4
# Kinds of failure that no holder reports.
SYSTEM_FAILURES = frozenset({"deadline", "lease_losses", "dependency_failed"})

P = TypeVar("P", bound=Payload)
Rule = Callable[[AnyWire], list[Finding]]
# A rule of one type, besides the rules of all types; the payload is of that type.
OwnRule = Callable[[AnyWire, Any], list[Finding]]


def rules_of(event: EventType) -> Rule:
    """Return all rules of one type as one function, which lists what is wrong with a wire of valid schema."""
    # The payload fields that may repeat the subject of the stream; only those of tasks have an attempt.
    repeated = {SUBJECT_FIELD[kind] for kind in event.streams if kind in SUBJECT_FIELD}
    if "task" in event.streams:
        repeated.add("attempt")
    stated = repeated.intersection(PAYLOADS[event.name].__struct_fields__)
    values = attrgetter(*sorted(stated), "TYPE") if stated else None
    nothing = (*[None] * len(stated), event.name)
    own = _RULES.get(event.name)

    def broken(wire: AnyWire) -> list[Finding]:
        findings: list[Finding] = []
        if values is not None and values(wire.payload) != nothing:
            findings += _check_repeated(wire.payload, parse_stream(wire.stream.stream_id))
        if wire.stream.causation_id == wire.wire_id:
            findings.append(Finding("own_cause", "/stream/causation_id", "a wire cannot be its own cause"))
        if _is_rare(wire.ts):
            findings += _check_time("/ts", wire.ts)
        if own is not None:
            findings += own(wire, wire.payload)
        return findings

    return broken


def _check_repeated(payload: Payload, place: Stream) -> list[Finding]:
    found = []
    for field, stated in ((SUBJECT_FIELD[place.kind], place.subject), ("attempt", place.attempt)):
        if stated and getattr(payload, field, None) not in (None, stated):
            text = f"the stream id has {stated}; the payload must have the same value or none"
            found.append(Finding("stream_mismatch", f"/payload/{field}", text))
    return found


def _is_rare(time: str) -> bool:
    """Return whether a schema accepts the time but the calendar may not have it: ends of months, and the year 0."""
    return time[8:10] > "28" or time[:4] == "0000"


def _check_time(where: str, text: str) -> list[Finding]:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return [Finding("no_such_time", where, f"the time {text} does not exist")]
    return []


def _check_lease(wire: AnyWire, payload: TaskClaimed | TaskLeaseExtended) -> list[Finding]:
    until = payload.lease_expires_at
    return _check_time("/payload/lease_expires_at", until) if until and _is_rare(until) else []


def _check_created(wire: AnyWire, payload: TaskCreated) -> list[Finding]:
    stream = wire.stream
    found: list[Finding] = []
    lists = (payload.roles, payload.capabilities, payload.waits_for, payload.outputs, stream.reference_task_ids)
    if lists != _NO_LISTS or stream.parent_task_id is not None:
        found += _check_entries(wire, payload, sum(map(len, filter(None, lists))))
    if payload.retry_of is not None or not stream.stream_id.endswith(":attempt:1"):
        found += _check_retry(payload.retry_of, parse_stream(stream.stream_id).attempt)
    return found


_NO_LISTS = (None, None, None, None, None)


def _check_entries(wire: AnyWire, payload: TaskCreated, listed: int) -> list[Finding]:
    task_id, parent = parse_stream(wire.stream.stream_id).subject, wire.stream.parent_task_id
    found = _check_dependencies(task_id, "waits_for", payload.waits_for or ())
    if parent == task_id:
        found.append(Finding("own_dependency", "/stream/parent_task_id", "a task cannot be its own parent"))
    entries = listed + (parent is not None)
    if entries > ENTRIES_LIMIT:
        text = f"{entries} roles, capabilities, dependencies, outputs, references and parent; a wire may have"
        text += f" {ENTRIES_LIMIT}; put the requirements of the task into a document and name it in structure_ref"
        found.append(Finding("entries_too_many", "/payload", text))
    return found


def _check_retry(retry_of: int | None, attempt: int) -> list[Finding]:
    expected = attempt - 1 or None
    if retry_of == expected:
        return []
    text = f"attempt {attempt} retries attempt {expected}" if expected else "a first attempt has no retry_of"
    return [Finding("retry_of_mismatch", "/payload/retry_of", text)]


def _check_blocked(wire: AnyWire, payload: TaskBlocked) -> list[Finding]:
    return _check_dependencies(parse_stream(wire.stream.stream_id).subject, "depends_on", payload.depends_on or ())


def _check_dependencies(task_id: str, field: str, task_ids: Sequence[str]) -> list[Finding]:
    if task_id not in task_ids:
        return []
    where = f"/payload/{field}/{task_ids.index(task_id)}"
    return [Finding("own_dependency", where, "a task cannot wait for itself")]


def _check_complete(wire: AnyWire, payload: TaskComplete) -> list[Finding]:
    found: list[Finding] = []
    if payload.manifest_ref is not None and payload.artifact_ids:
        text = "the manifest lists every artifact; artifact_ids must be empty"
        found.append(Finding("manifest_and_artifacts", "/payload/artifact_ids", text))
    places = payload.unverified or ()
    in_order = all(here < after for here, after in pairwise(places))
    if not in_order or (places and payload.manifest_ref is None and places[-1] >= len(payload.artifact_ids)):
        text = "unverified must have indexes of the named artifacts, in ascending order"
        found.append(Finding("no_such_artifact", "/payload/unverified", text))
    return found


def _check_superseded(wire: AnyWire, payload: ArtifactSuperseded) -> list[Finding]:
    if payload.by_artifact_id != parse_stream(wire.stream.stream_id).subject:
        return []
    text = "superseded_by must be another artifact, or absent if the next version replaces this one"
    return [Finding("own_replacement", "/payload/by_artifact_id", text)]


def _check_failed(wire: AnyWire, payload: TaskFailed) -> list[Finding]:
    if payload.kind in SYSTEM_FAILURES or payload.claim_id is not None:
        return []
    return [Finding("claim_id_missing", "/payload/claim_id", "a failure that a holder reports must name its claim")]


def _check_missed(wire: AnyWire, payload: TaskClaimMissed) -> list[Finding]:
    if payload.winning_claim_id != payload.claim_id:
        return []
    return [Finding("own_winner", "/payload/winning_claim_id", "a claim cannot lose to itself")]


def _check_gate(wire: AnyWire, payload: GateOpened) -> list[Finding]:
    if wire.stream.stream_id.startswith("workflow:") or payload.workflow_id is None:
        return []
    text = "a gate of a workflow belongs on the workflow's stream, not on a queue's"
    return [Finding("stream_mismatch", "/payload/workflow_id", text)]


def _check_mail(wire: AnyWire, payload: InboxSent) -> list[Finding]:
    stream_id, to = wire.stream.stream_id, payload.to
    if stream_id == to or (stream_id.startswith("workspace:") and not to.startswith("agent:")):
        return []
    text = "mail to an agent belongs on that agent's stream, other mail on the workspace's"
    return [Finding("stream_mismatch", "/payload/to", text)]


def _of(kind: type[P], rule: Callable[[AnyWire, P], list[Finding]]) -> tuple[str, OwnRule]:
    """Return a rule with the name of its type; mypy checks that the rule accepts payloads of that type."""
    return kind.TYPE, rule


_RULES: Mapping[str, OwnRule] = dict(
    [
        _of(TaskCreated, _check_created),
        _of(TaskClaimed, _check_lease),
        _of(TaskLeaseExtended, _check_lease),
        _of(TaskClaimMissed, _check_missed),
        _of(TaskBlocked, _check_blocked),
        _of(TaskComplete, _check_complete),
        _of(TaskFailed, _check_failed),
        _of(ArtifactSuperseded, _check_superseded),
        _of(GateOpened, _check_gate),
        _of(InboxSent, _check_mail),
    ]
)
