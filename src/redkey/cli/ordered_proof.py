"""Verify receipts of network-ordered workspaces: recompute the record from a mirror or a saved answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from redkey.cli.ledger_import import messages_of, structures_of
from redkey.errors import NetworkAway, ProofRefused
from redkey.ledger.mirror import MirrorRow
from redkey.ledger.network import check_next
from redkey.ledger.ordered import Compute
from redkey.ledger.record import EMPTY_HEAD, Record
from redkey.ledger.running_hash import chained
from redkey.shapes.receipts import ReceiptOrder


def computing(url: str | None, rows: Sequence[MirrorRow], structures: IO[bytes] | None) -> Compute:
    """Return the function that computes a record: from the mirror at a URL, or from the rows of saved answers."""

    def compute(order: ReceiptOrder, sequence: int) -> tuple[Record, int]:
        from redkey.services.ordered.recompute import recompute
        from redkey.stores.clock import SystemClock
        from redkey.stores.opening import open_memory

        known = {} if structures is None else structures_of(structures)
        pages = messages_of(order.network, order.topic, url) if url else _saved(rows, order.topic)
        try:
            return recompute(open_memory(SystemClock()), order, pages, known, sequence)
        except NetworkAway as away:
            raise ProofRefused(away.message, code=away.code) from away

    return compute


def _saved(rows: Sequence[MirrorRow], topic: str) -> Iterator[Sequence[Record]]:
    """Yield the messages of a topic in saved answers, each checked against the previous one."""
    head, page = EMPTY_HEAD, []
    for row in sorted({row.sequence: row for row in rows if row.topic == topic}.values(), key=lambda one: one.sequence):
        if row.payer is None:
            raise ProofRefused(f"row {row.sequence} of {topic} names no payer", code="mirror_unverifiable")
        record, _ = chained(head, topic, row.payer, row.timestamp, row.message)
        if record.sequence != row.sequence or record.running_hash != row.running_hash:
            text = f"row {row.sequence} of {topic} does not follow row {head.sequence}: save all of them, from 1 on"
            raise ProofRefused(text, code="mirror_gap")
        head = check_next(head, record)
        page.append(record)
    yield page
