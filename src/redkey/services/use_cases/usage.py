"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

import re

from redkey.commands.decision import invalid, not_found
from redkey.commands.registry import GrantCredits, PriceCredits
from redkey.errors import Finding
from redkey.readmodel.rows import entity
from redkey.readmodel.usage import usage_of
from redkey.reducers.entities import Workspace
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.workspaces import workspace_topic
from redkey.shapes import usage
from redkey.shapes.usage import (
    Credits,
    CreditsGrant,
    CreditsGranted,
    LedgerFees,
    NewPrices,
    PricesSet,
    UsageQuery,
    UsageReport,
)
from redkey.wire import events
from redkey.wire.catalogue import catalogue

_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)


@use_case(usage.GET_USAGE)
async def get_usage(caller: Caller, asked: UsageQuery) -> UsageReport:
    """What the workspace used."""
    wrong_days = [
        Finding("parameter_invalid", f"/{name}", "a day is as in 2026-05-07")
        for name, day in (("from", asked.from_), ("to", asked.to))
        if day and not _DAY.fullmatch(day)
    ]
    if wrong_days:
        raise invalid(wrong_days)
    store, topic = caller.means.store, caller.topic
    return await caller.in_thread(lambda: usage_of(store, topic, asked.from_, asked.to, asked.by))


@use_case(usage.GET_CREDITS)
def get_credits(caller: Caller) -> Credits:
    """What may be spent."""
    workspace = _workspace(caller, caller.topic)
    granted, used = workspace.credits_granted, workspace.credits_used
    return Credits(
        granted=granted,
        used=used,
        balance=granted - used if granted else None,
        unit=workspace.credits_unit,
        prices=workspace.prices,
        ledger_fees=LedgerFees(currency="HBAR", amount=0),
    )


@use_case(usage.GRANT_CREDITS)
def grant_credits(caller: Caller, grant: CreditsGrant) -> Pending[CreditsGranted]:
    """Grant credits; from the first grant on the workspace's use is limited."""

    def reply(outcome: Outcome, place: Place) -> CreditsGranted:
        granted = outcome.payload(events.CreditsGranted)
        return CreditsGranted(
            status="granted",
            workspace_id=place.world.workspace.workspace_id,
            amount=granted.amount,
            unit=granted.unit,
            event_id=outcome.event_id,
        )

    return Pending(GrantCredits(grant.amount, grant.unit), reply, topic=_topic(caller, grant.workspace_id))


@use_case(usage.SET_PRICES)
def set_prices(caller: Caller, new: NewPrices) -> Pending[PricesSet]:
    """Set what requests cost from now on."""
    unknown = sorted(new.prices.keys() - catalogue().keys())
    if unknown:
        raise invalid([Finding("unknown_type", f"/prices/{one[:64]}", "this is not an event type") for one in unknown])
    topic = _topic(caller, new.workspace_id)
    version = _workspace(caller, topic).price_version + 1
    ref, prices = caller.structure(new.prices)

    def reply(outcome: Outcome, place: Place) -> PricesSet:
        return PricesSet(
            status="priced",
            workspace_id=place.world.workspace.workspace_id,
            version=outcome.payload(events.CreditsPriced).version,
            event_id=outcome.event_id,
        )

    return Pending(PriceCredits(version, ref), reply, (prices,), topic=topic)


def _topic(caller: Caller, workspace_id: str | None) -> str:
    """The workspace that is meant: the caller's own when none is named."""
    return caller.topic if workspace_id is None else workspace_topic(caller, workspace_id)


def _workspace(caller: Caller, topic: str) -> Workspace:
    row = caller.means.store.row(topic, "workspace", "")
    if row is None:
        raise not_found("workspace")
    workspace: Workspace = entity(row)
    return workspace
