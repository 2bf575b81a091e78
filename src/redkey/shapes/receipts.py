"""Receipts and signed heads: what convinces a reader who trusts neither the server nor its operator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from redkey.shapes.events import EXAMPLE as EVENT_EXAMPLE
from redkey.shapes.events import EventHead
from redkey.shapes.fields import Body, Reply, one_of
from redkey.shapes.operation import READ, Operation


class ReceiptVerification(Reply, frozen=True, kw_only=True):
    """What the server says of the proof: `pending` until a checkpoint covers the record."""

    status: Annotated[str, one_of("verified", "pending")]
    provider: str
    receipt_url: str


class ReceiptEffect(Reply, frozen=True, kw_only=True):
    """What the record did: inclusion proves that it is there, not that it changed anything."""

    status: Annotated[str, one_of("applied", "void")]
    reason: str | None = None


class ReceiptLevels(Reply, frozen=True, kw_only=True):
    """The levels of proof that the offline part has the material for."""

    integrity: bool
    signed: bool
    witnessed: bool
    anchored: bool


class ReceiptInternal(Reply, frozen=True, kw_only=True):
    """What the ledger knows and normal users never need."""

    topic_id: str
    payer: str
    consensus_timestamp: str
    previous_running_hash: str
    running_hash: str


class SignerTerm(Reply, frozen=True, kw_only=True):
    """A signer of this log as the ledger tells it: added at a sequence, perhaps retired at another."""

    key: str
    added: int
    retired: int | None = None


class ReceiptProof(Reply, frozen=True, kw_only=True):
    """Everything that a verifier needs beside keys.

    `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id
    and signature of each signer of the document, which sign under the checkpoint's origin.
    """

    wire: str
    internal: ReceiptInternal
    proof: str
    signers: tuple[SignerTerm, ...] = ()
    content: tuple[str, ...] = ()
    anchor: tuple[dict[str, Any], ...] = ()
    attestation: tuple[str, ...] = ()


class Receipt(EventHead, frozen=True, kw_only=True):
    """The receipt of an event; `offline` is what it takes to verify it without the server."""

    verification: ReceiptVerification
    effect: ReceiptEffect
    levels: ReceiptLevels
    offline: ReceiptProof | None = None


class Checkpoint(Reply, frozen=True, kw_only=True):
    """A signed head of the workspace's log: how many records, and the root over them. `note` is what was signed.

    `keys` are the log's verifier keys, to be handed on by a way you trust: a key that comes with a receipt proves
    nothing.
    """

    origin: str
    size: int
    root: str
    note: str
    keys: tuple[str, ...]


class ReceiptQuery(Body, frozen=True, kw_only=True):
    """`receipt` tells what is proven; `proof` carries all that is needed to verify it offline; `tlog-proof` is the
    proof alone as C2SP text. `content` adds the bodies that the wire names."""

    format: Literal["receipt", "proof", "tlog-proof"] = "receipt"
    content: bool = False


EXAMPLE = {
    **{name: value for name, value in EVENT_EXAMPLE.items() if name != "data"},
    "verification": {
        "status": "verified",
        "provider": "redkey",
        "receiptUrl": "https://redkey.example/receipts/evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    },
    "effect": {"status": "applied"},
    "levels": {"integrity": True, "signed": True, "witnessed": False, "anchored": False},
}

GET_RECEIPT = Operation(
    "get_receipt",
    "GET",
    "/events/{event_id}/receipt",
    READ,
    query=ReceiptQuery,
    reply=Receipt,
    summary="The receipt of an event; with format=proof it can be verified without this server.",
    description="The receipt of an event.",
    media=("application/json", "text/plain"),
    reply_example=EXAMPLE,
)
SHOW_RECEIPT = Operation(
    "show_receipt",
    "GET",
    "/receipts/{event_id}",
    READ,
    shared=True,
    reply=Receipt,
    summary="What receiptUrl points at: a page for people, the whole receipt for programs.",
    description="What a receipt's address shows: a page to people, the whole receipt to programs. It needs no key "
    "where the workspace has the policy `receipts.public`.",
    media=("application/json", "text/html"),
    reply_example=EXAMPLE,
)
LATEST_CHECKPOINT = Operation(
    "latest_checkpoint",
    "GET",
    "/checkpoints/latest",
    READ,
    reply=Checkpoint,
    summary="The newest signed head of the workspace's log; as the signed note itself with Accept: text/plain.",
    description="The newest signed head; signed now when there is none.",
    media=("application/json", "text/plain"),
    replies={503: "Another process writes; the checkpoint could not be signed yet."},
    reply_example={
        "origin": "redkey/kq3…/wk_01JTMX9A2B3C4D5E6F7G8H9JKR/e1",
        "size": 55291,
        "root": "nND/nri/U0xuHUrYSy0HtMeal2vzD9V4k/BO79C+QeI=",
        "note": "redkey/kq3…/wk_01JTMX9A2B3C4D5E6F7G8H9JKR/e1\n55291\n…",
        "keys": ["redkey/kq3…+7f0c…+AX…"],
    },
    method_name="checkpoints.latest",
)

OPERATIONS = (GET_RECEIPT, SHOW_RECEIPT, LATEST_CHECKPOINT)
