"""Usage and credits: what was counted, what may be spent, what requests cost."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from redkey.shapes.fields import Body, Extended, Id, Reply, Slug, one_of
from redkey.shapes.operation import OPERATOR, READ, Operation

By = Literal["day", "type", "agent", "model", "task"]
# With `by=task`, only the most expensive tasks are listed.
TASKS_LIMIT = 1000
_LARGEST = 10**12


class UsageQuery(Body, frozen=True, kw_only=True):
    """Which days (UTC; `from` is included, `to` is not), and how to group them."""

    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    by: By = "day"


class UsageFigures(Reply, frozen=True, kw_only=True, omit_defaults=False):
    """What was counted: recorded events, outcomes of claims, bytes on the ledger, credits, and model costs."""

    events: int = 0
    claims: int = 0
    misses: int = 0
    rejected: int = 0
    bytes: int = 0
    credits: int = 0
    cost_usd: float = 0
    input_tokens: int = 0
    output_tokens: int = 0


class UsageGroup(UsageFigures, frozen=True, kw_only=True, omit_defaults=False):
    """The figures of one day, type, agent, model or task; the one that `by` selects is set."""

    day: str | None = None
    type: str | None = None
    agent_id: str | None = None
    model: str | None = None
    task_id: str | None = None


class LedgerFees(Reply, frozen=True, kw_only=True):
    """What a public network charged for the workspace's messages; a local ledger costs nothing.

    `reserved` is for messages on their way. Only operators see `tinybars`, the amount in the network's own currency.
    """

    currency: str
    amount: float
    # The same in credits, at the operator's rate.
    credits: float = 0
    reserved: float = 0
    messages: int = 0
    tinybars: int | None = None


class UsageReport(Reply, frozen=True, kw_only=True):
    """What the workspace used."""

    by: Annotated[str, one_of("day", "type", "agent", "model", "task")]
    total: UsageFigures
    items: tuple[UsageGroup, ...]
    ledger_fees: LedgerFees | None = None


class Credits(Reply, frozen=True, kw_only=True):
    """What may be spent. Before the first grant there is no limit and no balance."""

    granted: int
    used: int
    balance: int | None
    unit: str
    prices: dict[str, int]
    ledger_fees: LedgerFees


class CreditsGrant(Extended, frozen=True, kw_only=True):
    """Credits for a workspace; without `workspaceId`, for the caller's own."""

    amount: Annotated[int, Meta(ge=1, le=_LARGEST)]
    unit: Annotated[Slug, Meta(description="What is granted.")] = "credit"
    workspace_id: Id | None = None


class CreditsGranted(Reply, frozen=True, kw_only=True):
    """Credits that were granted."""

    status: Annotated[str, one_of("granted")]
    workspace_id: str
    amount: int
    unit: str
    event_id: str


class NewPrices(Extended, frozen=True, kw_only=True):
    """What requests cost, by event type; a type that is not listed costs one credit."""

    prices: Annotated[dict[str, Annotated[int, Meta(ge=0, le=_LARGEST)]], Meta(max_length=100)]
    workspace_id: Id | None = None


class PricesSet(Reply, frozen=True, kw_only=True):
    """The prices that apply from this event on."""

    status: Annotated[str, one_of("priced")]
    workspace_id: str
    version: int
    event_id: str


_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_FIGURES: dict[str, float] = {"events": 91, "claims": 12, "misses": 3, "rejected": 1, "bytes": 60211, "credits": 40}
_FIGURES |= {"costUsd": 1.37, "inputTokens": 410_000, "outputTokens": 9_300}

GET_USAGE = Operation(
    "get_usage",
    "GET",
    "/usage",
    READ,
    query=UsageQuery,
    reply=UsageReport,
    summary="Show the usage of the workspace, by day, type, agent, model or task.",
    description="Show the usage of the workspace. By task: the 1,000 most expensive ones.",
    reply_example={
        "by": "day",
        "total": _FIGURES,
        "items": [{**_FIGURES, "day": "2026-05-07", "type": None, "agentId": None, "model": None, "taskId": None}],
    },
    method_name="usage.get",
)
GET_CREDITS = Operation(
    "get_credits",
    "GET",
    "/billing/credits",
    READ,
    reply=Credits,
    summary="Show what the workspace may spend.",
    description="Show the credits of the workspace.",
    reply_example={
        "granted": 10000,
        "used": 40,
        "balance": 9960,
        "unit": "credit",
        "prices": {},
        "ledgerFees": {"currency": "USD", "amount": 0.00281, "messages": 3},
    },
    method_name="billing.credits",
    command="usage credits",
)
GRANT_CREDITS = Operation(
    "grant_credits",
    "POST",
    "/billing/credits",
    OPERATOR,
    body=CreditsGrant,
    reply=CreditsGranted,
    status=201,
    summary="Grant credits to a workspace.",
    description="Grant credits; the first grant limits what the workspace may use.",
    example={"workspaceId": _WORKSPACE_ID, "amount": 10000},
    reply_example={
        "status": "granted",
        "workspaceId": _WORKSPACE_ID,
        "amount": 10000,
        "unit": "credit",
        "eventId": _EVENT_ID,
    },
    replies={404: "There is no such workspace."},
    method_name="billing.grant",
    positional=("amount",),
    command="usage grant AMOUNT",
)
SET_PRICES = Operation(
    "set_prices",
    "POST",
    "/billing/prices",
    OPERATOR,
    body=NewPrices,
    reply=PricesSet,
    status=201,
    summary="Set what requests cost in a workspace, from now on.",
    description="Set what requests cost from now on.",
    example={"workspaceId": _WORKSPACE_ID, "prices": {"task.created": 5, "task.started": 0}},
    reply_example={"status": "priced", "workspaceId": _WORKSPACE_ID, "version": 2, "eventId": _EVENT_ID},
    replies={404: "There is no such workspace."},
    method_name="billing.set_prices",
    positional=("prices",),
)

OPERATIONS = (GET_USAGE, GET_CREDITS, GRANT_CREDITS, SET_PRICES)
