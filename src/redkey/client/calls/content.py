"""Content by its hash: streamed in, streamed out, erased. The ledger names it and never holds it.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get
from redkey.shapes.content import ErasedContent


class Content(Resource[Mode]):
    """Content by its hash: streamed in, streamed out, erased. The ledger names it and never holds it."""

    @Operation
    def get(self, sha256: str) -> Request[bytes]:
        """A body."""
        return get(at("content", sha256), bytes, accept="application/octet-stream")

    @Operation
    def erase(self, sha256: str) -> Request[ErasedContent]:
        """Erase a body. Its hash stays on the ledger, its bytes are gone."""
        return delete(at("content", sha256), ErasedContent)
