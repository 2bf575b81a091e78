"""Content by its hash: put, got, erased."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from redkey.client.calls import content
from redkey.client.flow import Flowing, download
from redkey.client.operation import Mode, Operation, Stream
from redkey.client.request import Request, at, get, reader
from redkey.shapes.content import OCTETS, KeptContent


class Content(content.Content[Mode]):
    """Bodies that the ledger names and never holds."""

    @Operation
    def put(self, data: bytes | str | Path, *, sha256: str | None = None) -> Request[KeptContent]:
        """Keep bytes, text or a file of up to 1 GiB under its SHA-256; another one than `sha256` is refused."""
        body = data.encode() if isinstance(data, str) else data
        query = {"sha256": sha256} if sha256 is not None else {}
        return Request("PUT", "/content", reader(KeptContent), query, body, OCTETS)

    @Stream
    def pieces(self, sha256: str) -> Flowing[bytes]:
        """A body in pieces, for what does not fit in memory; its hash is checked at the end."""
        return Flowing(partial(download, get(at("content", sha256), bytes, accept=OCTETS), sha256))
