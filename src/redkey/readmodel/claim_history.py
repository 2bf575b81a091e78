"""How an agent's claims went, read from the ledger: every attempt has one outcome, and that is the history."""

from __future__ import annotations

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record, iso_time
from redkey.readmodel.view import View
from redkey.wire.decode import decode
from redkey.wire.ids import event_id, stated

_STATUS = {"task.claimed": "claimed", "task.claim_missed": "missed", "task.claim_rejected": "rejected"}
_PAGE = 500
# An agent's events are mostly other things; a page ends early, with its cursor, rather than look through more.
_LOOKED_AT = 5000


class HistoryItem(View, frozen=True, kw_only=True):
    """One claim and its outcome."""

    task_id: str
    claim_id: str
    status: str
    reason: str = ""
    winning_claim_id: str = ""
    winning_agent_id: str = ""
    lease_expires_at: str = ""
    at: str
    event_id: str
    sequence: int


def claim_history(
    reader: Reader, topic: str, agent_id: str, before: int, limit: int
) -> tuple[list[HistoryItem], int | None]:
    """The outcomes of an agent's claims, newest first, below a sequence; and where the next page begins."""
    found: list[HistoryItem] = []
    looked = 0
    while looked < _LOOKED_AT:
        records = reader.events(topic, agent_id, before, _PAGE, newest_first=True)
        for record in records:
            looked, before = looked + 1, record.sequence
            item = _item(record, agent_id)
            if item is not None:
                found.append(item)
                if len(found) == limit:
                    return found, before
        if len(records) < _PAGE:
            return found, None
    return found, before


def _item(record: Record, agent_id: str) -> HistoryItem | None:
    wire = decode(record.wire)
    status = _STATUS.get(wire["type"])
    if status is None or stated(wire, "agent_id") != agent_id:
        return None
    payload = wire["payload"]
    return HistoryItem(
        task_id=stated(wire, "task_id"),
        claim_id=payload["claim_id"],
        status=status,
        reason=payload.get("reason", ""),
        winning_claim_id=payload.get("winning_claim_id", ""),
        winning_agent_id=payload.get("winning_agent_id", ""),
        lease_expires_at=payload.get("lease_expires_at", ""),
        at=iso_time(record.timestamp),
        event_id=event_id(wire["wire_id"]),
        sequence=record.sequence,
    )
