"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.replies import Reply
from redkey.client.request import Request, get, post


class UsageFigures(Reply, frozen=True, kw_only=True):
    """What was counted: recorded events, outcomes of claims, bytes on the ledger, credits."""

    events: int = 0
    claims: int = 0
    misses: int = 0
    rejected: int = 0
    bytes: int = 0
    credits: int = 0


class UsageGroup(UsageFigures, frozen=True, kw_only=True):
    """The figures of one day, type or agent; the one that was asked for is named."""

    day: str | None = None
    type: str | None = None
    agent_id: str | None = None


class UsageReport(Reply, frozen=True, kw_only=True):
    """What the workspace used."""

    by: str
    total: UsageFigures
    items: tuple[UsageGroup, ...]


class LedgerFees(Reply, frozen=True, kw_only=True):
    """What the ledger itself costs; a local one costs nothing."""

    currency: str
    amount: int


class Credits(Reply, frozen=True, kw_only=True):
    """What may be spent. Before the first grant nothing is limited, and there is no balance."""

    granted: int
    used: int
    balance: int | None
    unit: str
    prices: dict[str, int]
    ledger_fees: LedgerFees


class CreditsGranted(Reply, frozen=True, kw_only=True):
    """Credits that were granted."""

    status: str
    workspace_id: str
    amount: int
    unit: str
    event_id: str


class PricesSet(Reply, frozen=True, kw_only=True):
    """Prices that hold from this event on."""

    status: str
    workspace_id: str
    version: int
    event_id: str


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
