"""Receipts and signed heads: what convinces somebody who trusts neither the server nor its operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.replies import Reply
from redkey.client.request import Request, at, get
from redkey.client.resources.ledger import Party


class ReceiptVerification(Reply, frozen=True, kw_only=True):
    """What the server says of the proof: `pending` until a checkpoint covers the record."""

    status: str
    provider: str
    receipt_url: str


class ReceiptEffect(Reply, frozen=True, kw_only=True):
    """What the record did: inclusion proves that it is there, not that it changed anything."""

    status: str
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
    and signature of each signer of the document, which sign under the checkpoint's origin."""

    wire: str
    internal: ReceiptInternal
    proof: str
    signers: tuple[SignerTerm, ...] = ()
    content: tuple[str, ...] = ()
    anchor: tuple[dict[str, Any], ...] = ()
    attestation: tuple[str, ...] = ()


class Receipt(Reply, frozen=True, kw_only=True):
    """The receipt of an event. `document` is the receipt as it came, byte for byte.

    That is the file which `redkey receipt verify` takes; `save` writes it.
    """

    event_id: str
    type: str
    sequence: int
    timestamp: str
    actor: Party
    subject: Party
    verification: ReceiptVerification
    effect: ReceiptEffect
    levels: ReceiptLevels
    offline: ReceiptProof | None = None
    document: bytes = b""

    def save(self, path: str | Path) -> Path:
        """Write the file that `redkey receipt verify` takes."""
        file = Path(path)
        file.write_bytes(self.document)
        return file


class Checkpoint(Reply, frozen=True, kw_only=True):
    """A signed head of the workspace's log: how many records, and the root over them. `note` is what was signed.

    `keys` are the log's verifier keys, to be handed on by a way you trust: a key that comes with a receipt proves
    nothing."""

    origin: str
    size: int
    root: str
    note: str
    keys: tuple[str, ...]


def _receipt(request: Request[Receipt]) -> Request[Receipt]:
    """The same request, whose receipt keeps the bytes that came."""

    def read(body: bytes) -> Receipt:
        return msgspec.structs.replace(request.read(body), document=body)

    return msgspec.structs.replace(request, read=read)


class Receipts(Resource[Mode]):
    """Proofs of single events."""

    @Operation
    def get(self, event_id: str, *, content: bool | None = None) -> Request[Receipt]:
        """The receipt of an event with all that is needed to verify it offline; `content` adds the bodies it names."""
        return _receipt(get(at("events", event_id, "receipt"), Receipt, format="proof", content=content))

    @Operation
    def summary(self, event_id: str) -> Request[Receipt]:
        """What is proven, without the proof."""
        return _receipt(get(at("events", event_id, "receipt"), Receipt))

    @Operation
    def tlog_proof(self, event_id: str) -> Request[str]:
        """The proof alone, as C2SP text."""
        return get(at("events", event_id, "receipt"), str, accept="text/plain", format="tlog-proof")

    @Operation
    def page(self, event_id: str) -> Request[str]:
        """The receipt as a page for people, in HTML: what its `receipt_url` shows."""
        return get(at("receipts", event_id), str, accept="text/html")


class Checkpoints(Resource[Mode]):
    """Signed heads of the workspace's log."""

    @Operation
    def latest(self) -> Request[Checkpoint]:
        """The newest signed head, and the log's keys."""
        return get("/checkpoints/latest", Checkpoint)
