"""Receipts and signed heads by their use cases: whole, short, as text; each can be verified."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from redkey.commands.decision import Refused
from redkey.ledger.note import parse_key
from redkey.ledger.proof import parse_proof
from redkey.ledger.receipt import read_extra
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy, verify_receipt, verify_record_proof
from redkey.services.use_cases.events import query_ledger
from redkey.services.use_cases.receipts import get_receipt, latest_checkpoint, show_receipt
from redkey.shapes.events import LedgerQuery
from redkey.shapes.receipts import Receipt, ReceiptQuery
from tests.harness.callers import Callers, with_callers


async def first_event(callers: Callers) -> str:
    events = await callers.call(query_ledger, LedgerQuery(limit=1))
    event_id: str = events.items[0].event_id
    return event_id


def test_every_form_of_a_receipt_proves_the_same_event(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        event_id = await first_event(callers)
        head = await callers.call(latest_checkpoint)
        policy = Policy(keys=tuple(TrustedKey(parse_key(key)) for key in head.keys))
        whole = await callers.call(get_receipt, event_id, ReceiptQuery(format="proof"))
        assert verify_receipt(msgspec.json.encode(whole), policy).holds("integrity", "signed")
        assert await callers.call(show_receipt, event_id) == whole
        short = await callers.call(get_receipt, event_id, ReceiptQuery())
        assert short == {name: value for name, value in whole.items() if name != "offline"}
        read = msgspec.convert(whole, Receipt)
        assert (read.event_id, read.effect.status) == (event_id, "applied")
        text = await callers.call(get_receipt, event_id, ReceiptQuery(format="tlog-proof"))
        proof = parse_proof(text.encode())
        assert verify_record_proof(proof, *read_extra(proof.extra), policy).holds("integrity", "signed")

    with_callers(tmp_path, test)


def test_the_newest_head_covers_what_is_recorded(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        head = await callers.call(latest_checkpoint)
        assert head.note.startswith(f"{head.origin}\n{head.size}\n{head.root}\n")
        assert 0 < head.size <= callers.head

    with_callers(tmp_path, test)


@pytest.mark.parametrize("form", ["receipt", "proof", "tlog-proof"])
def test_an_event_that_is_not_there_has_no_receipt(tmp_path: Path, form: str) -> None:
    async def test(callers: Callers) -> None:
        asked = msgspec.convert({"format": form}, ReceiptQuery)
        wire_id = (await first_event(callers)).replace("evt_", "wire_")
        for event_id in ("evt_01M3250V0000000000000ZZZZZ", wire_id, "x"):
            with pytest.raises(Refused) as caught:
                await callers.call(get_receipt, event_id, asked)
            assert (caught.value.status, caught.value.code) == (404, "event_not_found")

    with_callers(tmp_path, test)
