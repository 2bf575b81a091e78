"""Receipts and signed heads: what convinces somebody who trusts neither this server nor its operator."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from redkey.api.call import Call, Raw
from redkey.api.page import receipt_page
from redkey.commands.decision import Refused, not_found
from redkey.http.route import READ, Route
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import encode_base64
from redkey.ledger.receipt import Receipt
from redkey.services.receipts import proof_for, receipt_for

TLOG_PROOF = "text/plain; charset=utf-8"
EXAMPLE = {
    "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    "type": "task.claimed",
    "sequence": 55291,
    "timestamp": "2026-05-07T18:15:00.000000001Z",
    "actor": {"type": "agent", "id": "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"},
    "subject": {"type": "task", "id": "task_01JTMX9A2B3C4D5E6F7G8H9JKP"},
    "verification": {
        "status": "verified",
        "provider": "redkey",
        "receiptUrl": "https://redkey.example/receipts/evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    },
    "effect": {"status": "applied"},
    "levels": {"integrity": True, "signed": True, "witnessed": False, "anchored": False},
}


class ReceiptQuery(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`receipt` tells what is proven; `proof` carries all that is needed to verify it offline; `tlog-proof` is the
    proof alone as C2SP text. `content` adds the bodies that the wire names."""

    format: Literal["receipt", "proof", "tlog-proof"] = "receipt"
    content: bool = False


class CheckpointReply(msgspec.Struct, frozen=True, rename="camel"):
    """A signed head of the workspace's log: how many records, and the root over them. `note` is what was signed.

    `keys` are the log's verifier keys, to be handed on by a way you trust: a key that comes with a receipt proves
    nothing.
    """

    origin: str
    size: int
    root: str
    note: str
    keys: list[str]


async def get_receipt(call: Call) -> Any:
    """The receipt of an event."""
    asked: ReceiptQuery = call.query
    event_id = call.path["event_id"]
    if asked.format == "tlog-proof":
        return await _tlog_proof(call, event_id)
    document = await _receipt(call, event_id, offline=asked.format == "proof", content=asked.content)
    return Raw(msgspec.json.encode(document))


async def show_receipt(call: Call) -> Any:
    """What a receipt's address shows: a page to people, the whole receipt to programs."""
    document = await _receipt(call, call.path["event_id"], offline=True, content=False)
    if call.accepts(b"text/html"):
        return receipt_page(document)
    return Raw(msgspec.json.encode(document))


async def _receipt(call: Call, event_id: str, *, offline: bool, content: bool) -> dict[str, Any]:
    services = call.services

    def build() -> dict[str, Any] | None:
        return receipt_for(
            services.store,
            call.topic,
            event_id,
            services.signing,
            base_url=services.config.public_url,
            offline=offline,
            content=content,
        )

    document = await call.in_thread(build) if event_id.startswith("evt_") else None
    if document is None:
        raise not_found("event")
    return document


async def _tlog_proof(call: Call, event_id: str) -> Raw:
    services = call.services
    proof = await call.in_thread(lambda: proof_for(services.store, call.topic, event_id, services.signing))
    if proof is None:
        raise not_found("event")
    return Raw(proof, TLOG_PROOF)


async def latest_checkpoint(call: Call) -> Any:
    """The newest signed head; signed now when there is none."""
    services = call.services

    def newest() -> bytes | None:
        found = services.store.checkpoints(call.topic, 1)
        return found[0][1] if found else services.signing.cover(call.topic, 1)

    note = await call.in_thread(newest)
    if note is None:
        raise Refused(503, "checkpoint_pending", "The first checkpoint is not signed yet.")
    if call.accepts(b"text/plain"):
        return Raw(note, TLOG_PROOF)
    checkpoint, _ = open_checkpoint(note)
    keys = [str(signer.verifier) for signer in services.signing.signers]
    return CheckpointReply(checkpoint.origin, checkpoint.size, encode_base64(checkpoint.root), note.decode(), keys)


_UNSIGNED = {503: "Another process writes; the checkpoint could not be signed yet."}
ROUTES = [
    Route(
        "GET",
        "/events/{event_id}/receipt",
        get_receipt,
        READ,
        query=ReceiptQuery,
        reply=Receipt,
        summary="The receipt of an event; with format=proof it can be verified without this server.",
        media=("application/json", "text/plain"),
        reply_example=EXAMPLE,
    ),
    Route(
        "GET",
        "/receipts/{event_id}",
        show_receipt,
        READ,
        reply=Receipt,
        summary="What receiptUrl points at: a page for people, the whole receipt for programs.",
        media=("application/json", "text/html"),
        reply_example=EXAMPLE,
    ),
    Route(
        "GET",
        "/checkpoints/latest",
        latest_checkpoint,
        READ,
        reply=CheckpointReply,
        summary="The newest signed head of the workspace's log; as the signed note itself with Accept: text/plain.",
        media=("application/json", "text/plain"),
        replies=_UNSIGNED,
        reply_example={
            "origin": "redkey/kq3…/wk_01JTMX9A2B3C4D5E6F7G8H9JKR/e1",
            "size": 55291,
            "root": "nND/nri/U0xuHUrYSy0HtMeal2vzD9V4k/BO79C+QeI=",
            "note": "redkey/kq3…/wk_01JTMX9A2B3C4D5E6F7G8H9JKR/e1\n55291\n…",
            "keys": ["redkey/kq3…+7f0c…+AX…"],
        },
    ),
]
