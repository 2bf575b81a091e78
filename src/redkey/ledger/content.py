"""Content: bytes that the ledger names by hash and does not hold.

Documents that the server writes carry a random nonce: once erased, their text cannot be guessed from the hash that
stays on the ledger. Structure is what reducers need to decide; replay needs it, so it is pinned and has no nonce: the
same plan always has the same structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from redkey.errors import ContentRefused
from redkey.ledger.ports import Content
from redkey.wire.canonical import canonical
from redkey.wire.events import Ref

NONCE_BYTES = 16


def body(data: bytes, *, pinned: bool = False) -> Content:
    """Return bytes as content, named by their hash."""
    return Content(sha256(data).hexdigest(), data, pinned)


def document(value: Mapping[str, Any], nonce: bytes) -> Content:
    """Write a document as content: canonical JSON with `nonce` added."""
    if len(nonce) != NONCE_BYTES:
        raise ContentRefused(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}", code="content_nonce")
    if "nonce" in value:
        raise ContentRefused("the document has a nonce already", code="content_nonce")
    return body(canonical({**value, "nonce": nonce.hex()}))


def structure(value: Mapping[str, Any]) -> Content:
    """Write structure as content: canonical JSON, pinned."""
    return body(canonical(dict(value)), pinned=True)


def ref(content: Content) -> Ref:
    """Return the reference by which a wire names content."""
    return Ref(bytes=len(content.data), sha256=content.sha256)


def check(content: Content) -> None:
    """Raise ContentRefused if the bytes do not have the hash that names them."""
    if sha256(content.data).hexdigest() != content.sha256:
        raise ContentRefused(
            f"the content named {content.sha256} has another hash; name it by its own SHA-256", code="content_hash"
        )
