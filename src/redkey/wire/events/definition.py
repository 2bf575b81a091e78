"""The payloads of `definition.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class DefinitionPublished(Payload, frozen=True, kw_only=True):
    """A version of a definition can be run, and never changes."""

    TYPE: ClassVar[str] = "definition.published"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    content_ref: Ref
    definition_id: str
    idem: str | None = None
    structure_ref: Ref
    version: int
