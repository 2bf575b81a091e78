"""Compute one record of an ordered workspace from the messages of its topic, to verify a receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from redkey.errors import LedgerError, ProofRefused
from redkey.ledger.ports import Content, SequencedStore
from redkey.ledger.record import Record
from redkey.services.ordered.messages import message_of
from redkey.services.ordered.projection import StructureMissing
from redkey.services.ordered.rebuild import rebuild
from redkey.shapes.receipts import ReceiptOrder


def recompute(
    store: SequencedStore,
    order: ReceiptOrder,
    pages: Iterable[Sequence[Record]],
    structures: Mapping[str, Content],
    sequence: int,
) -> tuple[Record, int]:
    """Return the record at a place of the local topic, and its message; 0 if the record is a consequence of others.

    `store` is empty; `pages` are the messages from the first on. ProofRefused if the messages do not give the record.
    """
    try:
        rebuilt = rebuild(store, order.network, order.topic, _until(pages, order.until), structures)
    except StructureMissing as missing:
        text = f"{missing.message} Bring a dump that has it: --structures FILE"
        raise ProofRefused(text, code=missing.code) from missing
    except LedgerError as wrong:
        raise ProofRefused(wrong.message, code=wrong.code) from wrong
    if rebuilt.messages < order.until:
        text = f"the messages end at {rebuilt.messages}, the receipt needs those up to {order.until}"
        raise ProofRefused(text, code="mirror_behind")
    records = store.read(rebuilt.topic, sequence - 1, 1)
    if not records:
        text = f"the messages up to {order.until} give {rebuilt.records} records, and no record {sequence}"
        raise ProofRefused(text, code="order_differs")
    message = message_of(store, rebuilt.topic, sequence)
    return records[0], message.sequence if message is not None else 0


def _until(pages: Iterable[Sequence[Record]], last: int) -> Iterator[Sequence[Record]]:
    """Yield messages up to one of them."""
    for page in pages:
        yield [message for message in page if message.sequence <= last]
        if page and page[-1].sequence >= last:
            return
