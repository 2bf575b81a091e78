"""The payloads of `signer.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload


@final
class SignerAdded(Payload, frozen=True, kw_only=True):
    """A key signs this log's checkpoints."""

    TYPE: ClassVar[str] = "signer.added"

    public_key: str
    signer_id: str


@final
class SignerRetired(Payload, frozen=True, kw_only=True):
    """The key signs no later checkpoint."""

    TYPE: ClassVar[str] = "signer.retired"

    public_key: str | None = None
    signer_id: str
    tree_size: int | None = None
