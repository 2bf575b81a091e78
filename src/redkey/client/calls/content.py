"""Content by its hash: uploaded, downloaded, erased. The ledger names it and never contains it.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get
from redkey.shapes.content import ErasedContent


class Content(Resource[Mode]):
    """Content by its hash: uploaded, downloaded, erased. The ledger names it and never contains it."""

    @Operation
    def get(self, sha256: str) -> Request[bytes]:
        """Get a body."""
        return get(at("content", sha256), bytes, accept="application/octet-stream")

    @Operation
    def erase(self, sha256: str, *, extensions: Mapping[str, Any] | None = None) -> Request[ErasedContent]:
        """Erase a body. Its hash stays on the ledger, its bytes are gone."""
        return delete(at("content", sha256), ErasedContent, extensions=extensions)
