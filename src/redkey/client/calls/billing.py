"""Usage and credits: what was counted, what may be spent, what requests cost.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get, post
from redkey.shapes.usage import Credits, CreditsGranted, PricesSet


class Billing(Resource[Mode]):
    """Usage and credits: what was counted, what may be spent, what requests cost."""

    @Operation
    def credits(self) -> Request[Credits]:
        """Show the credits of the workspace."""
        return get("/billing/credits", Credits)

    @Operation
    def grant(
        self,
        amount: int,
        *,
        unit: str | None = None,
        workspace_id: str | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Request[CreditsGranted]:
        """Grant credits; the first grant limits what the workspace may use."""
        return post(
            "/billing/credits",
            CreditsGranted,
            amount=amount,
            unit=unit,
            workspace_id=workspace_id,
            extensions=extensions,
        )

    @Operation
    def set_prices(
        self, prices: Mapping[str, int], *, workspace_id: str | None = None, extensions: Mapping[str, Any] | None = None
    ) -> Request[PricesSet]:
        """Set what requests cost in a workspace, from now on."""
        return post("/billing/prices", PricesSet, prices=prices, workspace_id=workspace_id, extensions=extensions)
