"""Receipts and signed heads: proofs for a verifier who trusts neither the server nor its operator."""

from __future__ import annotations

from pathlib import Path

import msgspec

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, get
from redkey.shapes import receipts as shapes


class Receipt(shapes.Receipt, frozen=True, kw_only=True):
    """The receipt of an event. `document` is the receipt exactly as it was received.

    It is the file that `redkey receipt verify` reads; `save` writes it.
    """

    document: bytes = b""

    def save(self, path: str | Path) -> Path:
        """Write the file that `redkey receipt verify` reads."""
        file = Path(path)
        file.write_bytes(self.document)
        return file


def _receipt(request: Request[Receipt]) -> Request[Receipt]:
    """Return the same request, with a reply that keeps the received bytes."""

    def read(body: bytes) -> Receipt:
        return msgspec.structs.replace(request.read(body), document=body)

    return msgspec.structs.replace(request, read=read)


class Receipts(Resource[Mode]):
    """Proofs of single events."""

    @Operation
    def get(self, event_id: str, *, content: bool | None = None) -> Request[Receipt]:
        """Return the receipt of an event with everything to verify it offline; `content` adds the bodies it names."""
        return _receipt(get(at("events", event_id, "receipt"), Receipt, format="proof", content=content))

    @Operation
    def summary(self, event_id: str) -> Request[Receipt]:
        """Return what the receipt proves, without the proof."""
        return _receipt(get(at("events", event_id, "receipt"), Receipt))

    @Operation
    def tlog_proof(self, event_id: str) -> Request[str]:
        """Return only the proof, as C2SP text."""
        return get(at("events", event_id, "receipt"), str, accept="text/plain", format="tlog-proof")

    @Operation
    def page(self, event_id: str) -> Request[str]:
        """Return the receipt as an HTML page for people, the one that its `receipt_url` shows."""
        return get(at("receipts", event_id), str, accept="text/html")
