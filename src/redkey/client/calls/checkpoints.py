"""Receipts and signed heads: proofs for readers who trust neither the server nor its operator.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get
from redkey.shapes.receipts import Checkpoint


class Checkpoints(Resource[Mode]):
    """Receipts and signed heads: proofs for readers who trust neither the server nor its operator."""

    @Operation
    def latest(self) -> Request[Checkpoint]:
        """The newest signed head of the workspace's log; with Accept: text/plain, the signed note itself."""
        return get("/checkpoints/latest", Checkpoint)
