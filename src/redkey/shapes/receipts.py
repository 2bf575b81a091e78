"""Receipts and signed heads: proofs for readers who trust neither the server nor its operator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from redkey.shapes.events import EXAMPLE as EVENT_EXAMPLE
from redkey.shapes.events import EventHead
from redkey.shapes.fields import Body, Reply, one_of
from redkey.shapes.operation import READ, Operation


class ReceiptVerification(Reply, frozen=True, kw_only=True):
    """The state of the proof: `pending` until a checkpoint covers the record."""

    status: Annotated[str, one_of("verified", "pending")]
    provider: str
    receipt_url: str


class ReceiptEffect(Reply, frozen=True, kw_only=True):
    """What the record did: inclusion proves that the record exists, not that it changed anything."""

    status: Annotated[str, one_of("applied", "void")]
    reason: str | None = None


class ReceiptLevels(Reply, frozen=True, kw_only=True):
    """The levels of proof that the offline part has the material for."""

    integrity: bool
    signed: bool
    witnessed: bool
    anchored: bool


class ReceiptInternal(Reply, frozen=True, kw_only=True):
    """Details of the ledger that most users do not need."""

    topic_id: str
    payer: str
    consensus_timestamp: str
    previous_running_hash: str
    running_hash: str


class SignerTerm(Reply, frozen=True, kw_only=True):
    """A signer of this log: added at a sequence, and possibly retired at a later one."""

    key: str
    added: int
    retired: int | None = None


class ReceiptOrder(Reply, frozen=True, kw_only=True):
    """Where a public network orders the workspace: its topic, and the message there that the record is.

    A record without a `sequence` follows from others. The messages up to `until` are what it takes to compute it.
    """

    network: str
    topic: str
    sequence: int | None = None
    until: int


class ReceiptProof(Reply, frozen=True, kw_only=True):
    """Everything that a verifier needs, except the keys.

    `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id and
    signature of each signer of the document, who sign under the checkpoint's origin.
    """

    wire: str
    internal: ReceiptInternal
    proof: str
    signers: tuple[SignerTerm, ...] = ()
    content: tuple[str, ...] = ()
    anchor: tuple[dict[str, Any], ...] = ()
    order: ReceiptOrder | None = None
    attestation: tuple[str, ...] = ()


class Receipt(EventHead, frozen=True, kw_only=True):
    """The receipt of an event; `offline` contains what is needed to verify it without the server."""

    verification: ReceiptVerification
    effect: ReceiptEffect
    levels: ReceiptLevels
    offline: ReceiptProof | None = None


class Checkpoint(Reply, frozen=True, kw_only=True):
    """A signed head of the workspace's log: the number of records and their root. `note` is the signed text.

    `keys` are the log's verifier keys. Pass them to others by a way you trust: a key that comes with a receipt proves
    nothing.
    """

    origin: str
    size: int
    root: str
    note: str
    keys: tuple[str, ...]


class ReceiptQuery(Body, frozen=True, kw_only=True):
    """`receipt` says what is proven; `proof` also contains what is needed to verify it offline; `tlog-proof` is
    only the proof, as C2SP text. `content` adds the bodies that the wire names."""

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
    summary="Show a receipt: a page for people, the whole receipt for programs.",
    description="Show the receipt at its `receiptUrl`: a page for people, the whole receipt for programs. If the "
    "workspace has the policy `receipts.public`, no key is needed, and keys of other workspaces see it too.",
    media=("application/json", "text/html"),
    reply_example=EXAMPLE,
)
LATEST_CHECKPOINT = Operation(
    "latest_checkpoint",
    "GET",
    "/checkpoints/latest",
    READ,
    reply=Checkpoint,
    summary="The newest signed head of the workspace's log; with Accept: text/plain, the signed note itself.",
    description="The newest signed head; if there is none, one is signed now.",
    media=("application/json", "text/plain"),
    replies={503: "Another process is writing; the checkpoint could not be signed yet."},
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
