"""The payloads of `checkpoint.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload


@final
class CheckpointAnchored(Payload, frozen=True, kw_only=True):
    """A checkpoint stands on a public network."""

    TYPE: ClassVar[str] = "checkpoint.anchored"

    network: str
    root: str
    sequence_number: int
    topic_id: str
    tree_size: int
