"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redkey.api.call import Call
from redkey.api.fields import Body, Id, Slug, wrong
from redkey.commands.decision import invalid, not_found
from redkey.commands.registry import GrantCredits, PriceCredits
from redkey.errors import Finding
from redkey.http.route import OPERATOR, READ, Route
from redkey.readmodel.rows import entity
from redkey.readmodel.usage import By, Figures, usage_of
from redkey.reducers.entities import Workspace
from redkey.services.workspaces import topic_of
from redkey.wire.catalogue import catalogue
from redkey.wire.ids import event_id

_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_LARGEST = 10**12


class UsageQuery(Body, frozen=True, kw_only=True):
    """Which days (UTC; `from` is included, `to` is not), and how they are grouped."""

    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    by: By = "day"


class UsageGroup(Figures, frozen=True, rename="camel", omit_defaults=False):
    """The figures of one day, type or agent; the one that was asked for is named."""

    day: str | None = None
    type: str | None = None
    agent_id: str | None = None


class UsageReply(msgspec.Struct, frozen=True, rename="camel"):
    """What the workspace used."""

    by: By
    total: Figures
    items: list[UsageGroup]


class LedgerFees(msgspec.Struct, frozen=True, rename="camel"):
    """What the ledger itself costs; a local one costs nothing."""

    currency: str
    amount: int


class CreditsReply(msgspec.Struct, frozen=True, rename="camel"):
    """What may be spent. Before the first grant nothing is limited, and there is no balance."""

    granted: int
    used: int
    balance: int | None
    unit: str
    prices: dict[str, int]
    ledger_fees: LedgerFees


class Grant(Body, frozen=True, kw_only=True):
    """Credits for a workspace, the caller's own when none is named."""

    amount: Annotated[int, Meta(ge=1, le=_LARGEST)]
    unit: Slug = "credit"
    workspace_id: Id | None = None


class CreditsGranted(msgspec.Struct, frozen=True, rename="camel"):
    """Credits that were granted."""

    status: Literal["granted"]
    workspace_id: str
    amount: int
    unit: str
    event_id: str


class Prices(Body, frozen=True, kw_only=True):
    """What requests cost, by event type; a type that is not named costs one credit."""

    prices: Annotated[dict[str, Annotated[int, Meta(ge=0, le=_LARGEST)]], Meta(max_length=100)]
    workspace_id: Id | None = None


class Priced(msgspec.Struct, frozen=True, rename="camel"):
    """Prices that hold from this event on."""

    status: Literal["priced"]
    workspace_id: str
    version: int
    event_id: str


async def get_usage(call: Call) -> UsageReply:
    """What the workspace used."""
    asked: UsageQuery = call.query
    wrong_days = [
        Finding("parameter_invalid", f"/{name}", "a day is as in 2026-05-07")
        for name, day in (("from", asked.from_), ("to", asked.to))
        if day and not _DAY.fullmatch(day)
    ]
    if wrong_days:
        raise invalid(wrong_days)
    store = call.services.store
    usage = await call.in_thread(lambda: usage_of(store, call.topic, asked.from_, asked.to, asked.by))
    field = "agent_id" if asked.by == "agent" else asked.by
    items = [
        UsageGroup(**msgspec.structs.asdict(figures), **{field: name})  # type: ignore[arg-type]
        for name, figures in usage.groups
    ]
    return UsageReply(asked.by, usage.total, items)


async def get_credits(call: Call) -> CreditsReply:
    """What may be spent."""
    workspace = _workspace(call, call.topic)
    granted, used = workspace.credits_granted, workspace.credits_used
    return CreditsReply(
        granted,
        used,
        granted - used if granted else None,
        workspace.credits_unit,
        workspace.prices,
        LedgerFees("HBAR", 0),
    )


async def grant_credits(call: Call, body: Grant) -> CreditsGranted:
    """Grant credits; from the first grant on the workspace's use is limited."""
    topic = _topic(call, body.workspace_id)
    outcome = await call.submit(GrantCredits(body.amount, body.unit), topic=topic)
    wire = outcome.records[0].wire
    payload = wire["payload"]
    return CreditsGranted("granted", _subject(wire), payload["amount"], payload["unit"], event_id(wire["wire_id"]))


async def set_prices(call: Call, body: Prices) -> Priced:
    """Set what requests cost from now on."""
    unknown = sorted(body.prices.keys() - catalogue().keys())
    if unknown:
        raise invalid([Finding("unknown_type", f"/prices/{one[:64]}", "this is not an event type") for one in unknown])
    topic = _topic(call, body.workspace_id)
    version = _workspace(call, topic).price_version + 1
    ref, prices = call.structure(body.prices)
    outcome = await call.submit(PriceCredits(version, ref), (prices,), topic=topic)
    wire = outcome.records[0].wire
    return Priced("priced", _subject(wire), wire["payload"]["version"], event_id(wire["wire_id"]))


def _topic(call: Call, workspace_id: str | None) -> str:
    if workspace_id is None or workspace_id == call.actor.workspace_id:
        return call.topic
    topic = topic_of(call.services.store, workspace_id)
    if topic is None:
        raise not_found("workspace")
    return topic


def _workspace(call: Call, topic: str) -> Workspace:
    row = call.services.store.row(topic, "workspace", "")
    if row is None:
        raise wrong("workspace_missing", "/workspaceId", "the workspace is not there")
    workspace: Workspace = entity(row)
    return workspace


def _subject(wire: dict[str, Any]) -> str:
    stream_id: str = wire["stream"]["stream_id"]
    return stream_id.partition(":")[2]


_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_WORKSPACE_ID = "wk_01JTMX9A2B3C4D5E6F7G8H9JKR"
_FIGURES = {"events": 91, "claims": 12, "misses": 3, "rejected": 1, "bytes": 60211, "credits": 40}
ROUTES = [
    Route(
        "GET",
        "/usage",
        get_usage,
        READ,
        query=UsageQuery,
        reply=UsageReply,
        summary="What the workspace used, by day, type or agent.",
        reply_example={
            "by": "day",
            "total": _FIGURES,
            "items": [{**_FIGURES, "day": "2026-05-07", "type": None, "agentId": None}],
        },
    ),
    Route(
        "GET",
        "/billing/credits",
        get_credits,
        READ,
        reply=CreditsReply,
        summary="What the workspace may spend.",
        reply_example={
            "granted": 10000,
            "used": 40,
            "balance": 9960,
            "unit": "credit",
            "prices": {},
            "ledgerFees": {"currency": "HBAR", "amount": 0},
        },
    ),
    Route(
        "POST",
        "/billing/credits",
        grant_credits,
        OPERATOR,
        body=Grant,
        reply=CreditsGranted,
        status=201,
        summary="Grant credits to a workspace.",
        example={"workspaceId": _WORKSPACE_ID, "amount": 10000},
        reply_example={
            "status": "granted",
            "workspaceId": _WORKSPACE_ID,
            "amount": 10000,
            "unit": "credit",
            "eventId": _EVENT_ID,
        },
        replies={404: "There is no such workspace."},
    ),
    Route(
        "POST",
        "/billing/prices",
        set_prices,
        OPERATOR,
        body=Prices,
        reply=Priced,
        status=201,
        summary="Set what requests cost in a workspace, from now on.",
        example={"workspaceId": _WORKSPACE_ID, "prices": {"task.created": 5, "task.started": 0}},
        reply_example={"status": "priced", "workspaceId": _WORKSPACE_ID, "version": 2, "eventId": _EVENT_ID},
        replies={404: "There is no such workspace."},
    ),
]
