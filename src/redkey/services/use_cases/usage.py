"""Usage and credits: what was counted, what may be spent, what things cost."""

from __future__ import annotations

import re

import msgspec

from redkey.commands.decision import invalid
from redkey.commands.registry import GrantCredits, PriceCredits
from redkey.errors import Finding
from redkey.ledger.fees import USD
from redkey.readmodel.usage import usage_of
from redkey.services.caller import Caller, Pending
from redkey.services.network_fees import read_book
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.services.use_cases.workspaces import workspace_at, workspace_topic
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
    """Show what the workspace used."""
    wrong_days = [
        Finding("parameter_invalid", f"/{name}", "expected a day such as 2026-05-07")
        for name, day in (("from", asked.from_), ("to", asked.to))
        if day and not _DAY.fullmatch(day)
    ]
    if wrong_days:
        raise invalid(wrong_days)
    store, topic = caller.means.store, caller.topic
    report = await caller.in_thread(lambda: usage_of(store, topic, asked.from_, asked.to, asked.by))
    return msgspec.structs.replace(report, ledger_fees=_fees(caller, topic))


@use_case(usage.GET_CREDITS)
def get_credits(caller: Caller) -> Credits:
    """Show what may be spent."""
    workspace = workspace_at(caller, caller.topic)
    granted, used = workspace.credits_granted, workspace.credits_used
    return Credits(
        granted=granted,
        used=used,
        balance=granted - used if granted else None,
        unit=workspace.credits_unit,
        prices=workspace.prices,
        ledger_fees=_fees(caller, caller.topic),
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
    version = workspace_at(caller, topic).price_version + 1
    ref, prices = caller.structure(new.prices)

    def reply(outcome: Outcome, place: Place) -> PricesSet:
        return PricesSet(
            status="priced",
            workspace_id=place.world.workspace.workspace_id,
            version=outcome.payload(events.CreditsPriced).version,
            event_id=outcome.event_id,
        )

    return Pending(PriceCredits(version, ref), reply, (prices,), topic=topic)


def _fees(caller: Caller, topic: str) -> LedgerFees:
    """Return what the network charged in all; the amount in its own currency only for an operator."""
    book = read_book(caller.means.store, topic)
    return LedgerFees(
        currency="USD",
        amount=book.tinycents / USD,
        credits=book.tinycents / USD * caller.means.config.hedera.credits_per_usd or 0,
        reserved=book.reserved / USD or 0,
        messages=book.messages,
        tinybars=book.tinybars if "operator" in caller.actor.scopes else None,
    )


def _topic(caller: Caller, workspace_id: str | None) -> str:
    """Return the workspace of the request: the caller's own if none is named."""
    return caller.topic if workspace_id is None else workspace_topic(caller, workspace_id)
