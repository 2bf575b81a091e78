"""One receipt with every possible part, and the policy under which all its levels hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

import orjson

from redkey.ledger.anchor import anchor_message
from redkey.ledger.mirror import mirror_row, parse_row
from redkey.ledger.note import Note
from redkey.ledger.record import EMPTY_HEAD, Head
from redkey.ledger.running_hash import chained
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy, Verdict, verify_receipt
from redkey.shapes.receipts import SignerTerm
from tests.harness.small_log import NEXT_SIGNER, SIGNER, WITNESSES, SmallLog, claimed

BODY = b'{"nonce":"00112233445566778899aabbccddeeff","title":"Research Piers Gorman"}'
SEQUENCE = 260
ANCHOR_TOPIC = "0.0.777001"


@cache
def whole_log() -> SmallLog:
    log = SmallLog(SEQUENCE - 1)
    log.append(claimed(SEQUENCE, content_ref={"sha256": sha256(BODY).hexdigest(), "bytes": len(BODY)}))
    for number in range(SEQUENCE + 1, 301):
        log.append(claimed(number))
    return log


@cache
def whole_note() -> Note:
    return whole_log().note(SIGNER, witnesses=WITNESSES[:2])


@cache
def anchor_rows() -> list[dict[str, Any]]:
    """Rows of a public topic: another message, the anchored checkpoint, another message."""
    head, rows = EMPTY_HEAD, []
    messages = (b"hello", anchor_message(whole_log().checkpoint()), b"more")
    for number, message in enumerate(messages):
        record, _ = chained(head, ANCHOR_TOPIC, "0.0.2002", 1_778_177_900 * 10**9 + number, message)
        head = Head(record.sequence, record.timestamp, record.running_hash)
        rows.append(mirror_row(record))
    return rows


def whole_receipt(**changed: Any) -> dict[str, Any]:
    terms = [
        SignerTerm(key=str(SIGNER.verifier), added=1),
        SignerTerm(key=str(NEXT_SIGNER.verifier), added=40, retired=200),
    ]
    options = {"history": terms, "content": [BODY], "anchor": anchor_rows()[:2], **changed}
    return whole_log().receipt(SEQUENCE, options.pop("note", whole_note()), **options)


def whole_policy() -> Policy:
    return Policy(
        keys=(TrustedKey(SIGNER.verifier),),
        witnesses=tuple(witness.verifier for witness in WITNESSES[:2]),
        mirror=tuple(parse_row(row) for row in anchor_rows()[1:]),
    )


def judged(document: Any, policy: Policy | None = None) -> Verdict:
    return verify_receipt(orjson.dumps(document), whole_policy() if policy is None else policy)


def refused(document: Any, codes: Sequence[str] = (), policy: Policy | None = None) -> Verdict:
    """The verdict on a receipt that must fail with reasons; `codes` must be among them."""
    policy = whole_policy() if policy is None else policy
    verdict = judged(document, policy)
    assert not verdict.holds(*policy.asked), "a changed receipt passed"
    assert verdict.findings, "refused without a reason"
    assert set(codes) <= {finding.code for finding in verdict.findings}, verdict.findings
    return verdict
