"""The payloads of `artifact.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class ArtifactReady(Payload, frozen=True, kw_only=True):
    """An output of the attempt exists, named by hash."""

    TYPE: ClassVar[str] = "artifact.ready"
    KEYED: ClassVar[bool] = True

    artifact_id: str
    body: str | None = None
    bytes: int
    claim_id: str
    content_ref: Ref
    derived_from: tuple[str, ...] | None = None
    idem: str | None = None
    name: str
    readiness: str
    sha256: str
    version: int

    def named(self) -> tuple[str | None, ...]:
        return (self.claim_id,)
