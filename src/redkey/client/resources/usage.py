"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get, post
from redkey.shapes.usage import Credits as Credits
from redkey.shapes.usage import CreditsGranted as CreditsGranted
from redkey.shapes.usage import LedgerFees as LedgerFees
from redkey.shapes.usage import PricesSet as PricesSet
from redkey.shapes.usage import UsageFigures as UsageFigures
from redkey.shapes.usage import UsageGroup as UsageGroup
from redkey.shapes.usage import UsageReport as UsageReport


class Usage(Resource[Mode]):
    """What the workspace used."""

    @Operation
    def get(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        by: Literal["day", "type", "agent"] | None = None,
    ) -> Request[UsageReport]:
        """What was used from the day `since` on and before the day `until` (UTC), by day, type or agent."""
        return get("/usage", UsageReport, from_=since, to=until, by=by)


class Billing(Resource[Mode]):
    """Credits and prices."""

    @Operation
    def credits(self) -> Request[Credits]:
        """What may be spent."""
        return get("/billing/credits", Credits)

    @Operation
    def grant(
        self, amount: int, *, unit: str | None = None, workspace_id: str | None = None
    ) -> Request[CreditsGranted]:
        """Grant credits to a workspace, the caller's own when none is named (operators)."""
        return post("/billing/credits", CreditsGranted, amount=amount, unit=unit, workspace_id=workspace_id)

    @Operation
    def set_prices(self, prices: Mapping[str, int], *, workspace_id: str | None = None) -> Request[PricesSet]:
        """Set what requests cost, by event type (operators)."""
        return post("/billing/prices", PricesSet, prices=prices, workspace_id=workspace_id)
