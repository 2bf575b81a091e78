"""Content, addressed by its hash: store, read, erase."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from redkey.client.calls import content
from redkey.client.flow import Flowing, download
from redkey.client.operation import Mode, Operation, Stream
from redkey.client.request import Request, at, get, reader
from redkey.shapes.content import OCTETS, KeptContent


class Content(content.Content[Mode]):
    """The bodies whose hashes the ledger records."""

    @Operation
    def put(self, data: bytes | str | Path, *, sha256: str | None = None) -> Request[KeptContent]:
        """Store bytes, text or a file of up to 1 GiB under its SHA-256; refused if it differs from `sha256`."""
        body = data.encode() if isinstance(data, str) else data
        query = {"sha256": sha256} if sha256 is not None else {}
        return Request("PUT", "/content", reader(KeptContent), query, body, OCTETS)

    @Stream
    def pieces(self, sha256: str) -> Flowing[bytes]:
        """Return a body in pieces, for bodies that do not fit in memory; the hash is checked at the end."""
        return Flowing(partial(download, get(at("content", sha256), bytes, accept=OCTETS), sha256))
