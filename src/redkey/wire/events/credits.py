"""The payloads of `credits.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload


@final
class CreditsGranted(Payload, frozen=True, kw_only=True):
    """The workspace may use this much more."""

    TYPE: ClassVar[str] = "credits.granted"
    KEYED: ClassVar[bool] = True

    amount: int
    body: str | None = None
    idem: str | None = None
    unit: str


@final
class CreditsPriced(Payload, frozen=True, kw_only=True):
    """From here on, requests cost what this table says."""

    TYPE: ClassVar[str] = "credits.priced"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    prices_ref: Ref
    version: int
