"""The history of an agent's claims, read from the ledger: the outcome of each attempt to claim."""

from __future__ import annotations

from msgspec.structs import replace

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record, iso_time
from redkey.readmodel.rows import entity
from redkey.reducers.entities import Task
from redkey.shapes.agents import ClaimHistoryItem
from redkey.wire.envelope import wire_of
from redkey.wire.events import (
    TaskBlocked,
    TaskClaimed,
    TaskClaimMissed,
    TaskClaimRejected,
    TaskComplete,
    TaskFailed,
    TaskLeaseExpired,
    TaskLeaseExtended,
    TaskReleased,
    TaskStalled,
)
from redkey.wire.ids import event_id, parse_stream

_STATUS: dict[type, str] = {TaskClaimed: "claimed", TaskClaimMissed: "missed", TaskClaimRejected: "rejected"}
_ENDS: dict[type, str] = {
    TaskComplete: "completed",
    TaskFailed: "failed",
    TaskReleased: "released",
    TaskBlocked: "blocked",
    TaskLeaseExpired: "expired",
    TaskStalled: "stalled",
}
_PAGE = 500
# Most events of an agent are no outcomes; a page ends early, with its cursor, after this many events.
_LOOKED_AT = 5000


def claim_history(
    reader: Reader, topic: str, agent_id: str, before: int, limit: int
) -> tuple[list[ClaimHistoryItem], int | None]:
    """List the outcomes of an agent's claims, newest first, below a sequence; and where the next page begins."""
    found: list[ClaimHistoryItem] = []
    looked = 0
    while looked < _LOOKED_AT:
        records = reader.events(topic, agent_id, before, _PAGE, newest_first=True)
        for record in records:
            looked, before = looked + 1, record.sequence
            item = _item(record, agent_id)
            if item is not None:
                if item.status == "claimed":
                    item = replace(item, ended=_end(reader, topic, item))
                found.append(item)
                if len(found) == limit:
                    return found, before
        if len(records) < _PAGE:
            return found, None
    return found, before


def _end(reader: Reader, topic: str, item: ClaimHistoryItem) -> str:
    """How a won claim ended: by the last of its own events, or with its task."""
    for record in reader.events(topic, item.claim_id, 0, _PAGE, newest_first=True):
        payload = wire_of(record.wire).payload
        if isinstance(payload, TaskLeaseExtended):
            # What ended before was taken up again.
            break
        if type(payload) in _ENDS:
            return _ENDS[type(payload)]
    row = reader.row(topic, "task", item.task_id)
    task: Task | None = entity(row) if row is not None else None
    return "cancelled" if task is not None and task.state == "cancelled" else "held"


def _item(record: Record, agent_id: str) -> ClaimHistoryItem | None:
    wire = wire_of(record.wire)
    payload = wire.payload
    if not isinstance(payload, TaskClaimed | TaskClaimMissed | TaskClaimRejected):
        return None
    # A won claim is on the task's stream, a lost one on the agent's; the payload names the other.
    subject = parse_stream(wire.stream.stream_id).subject
    if (payload.agent_id or subject) != agent_id:
        return None
    item = ClaimHistoryItem(
        task_id=payload.task_id or subject,
        claim_id=payload.claim_id,
        status=_STATUS[type(payload)],
        at=iso_time(record.timestamp),
        event_id=event_id(wire.wire_id),
        sequence=record.sequence,
    )
    if isinstance(payload, TaskClaimed):
        return replace(item, lease_expires_at=payload.lease_expires_at or "")
    if isinstance(payload, TaskClaimRejected):
        return replace(item, reason=payload.reason)
    return replace(
        item,
        reason=payload.reason,
        winning_claim_id=payload.winning_claim_id,
        winning_agent_id=payload.winning_agent_id,
    )
