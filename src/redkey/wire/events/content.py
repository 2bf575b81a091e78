"""The payloads of `content.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload


@final
class ContentErased(Payload, frozen=True, kw_only=True):
    """Content was erased; its hash stays."""

    TYPE: ClassVar[str] = "content.erased"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    sha256: str
