"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

from redkey.client.calls.billing import Billing
from redkey.client.calls.usage import Usage
from redkey.shapes.usage import Credits, CreditsGranted, LedgerFees, PricesSet, UsageFigures, UsageGroup, UsageReport

__all__ = [
    "Billing",
    "Credits",
    "CreditsGranted",
    "LedgerFees",
    "PricesSet",
    "Usage",
    "UsageFigures",
    "UsageGroup",
    "UsageReport",
]
