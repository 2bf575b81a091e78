"""The payloads of `ledger.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.payload import Payload


@final
class LedgerRestored(Payload, frozen=True, kw_only=True):
    """The log goes on from a backup, in a new epoch."""

    TYPE: ClassVar[str] = "ledger.restored"

    epoch: int
    origin: str | None = None
    root: str
    tree_size: int
