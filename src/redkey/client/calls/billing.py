"""Usage and credits: what was counted, what may be spent, what things cost.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get, post
from redkey.shapes.usage import Credits, CreditsGranted, PricesSet


class Billing(Resource[Mode]):
    """Usage and credits: what was counted, what may be spent, what things cost."""

    @Operation
    def credits(self) -> Request[Credits]:
        """What the workspace may spend."""
        return get("/billing/credits", Credits)

    @Operation
    def grant(
        self, amount: int, *, unit: str | None = None, workspace_id: str | None = None
    ) -> Request[CreditsGranted]:
        """Grant credits; from the first grant on the workspace's use is limited."""
        return post("/billing/credits", CreditsGranted, amount=amount, unit=unit, workspace_id=workspace_id)

    @Operation
    def set_prices(self, prices: Mapping[str, int], *, workspace_id: str | None = None) -> Request[PricesSet]:
        """Set what requests cost in a workspace, from now on."""
        return post("/billing/prices", PricesSet, prices=prices, workspace_id=workspace_id)
