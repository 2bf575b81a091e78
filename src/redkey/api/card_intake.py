"""Cards on their way in: fetched when a URL is given, read, held against the pinned keys of this server."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from redkey.api.call import Call
from redkey.commands.decision import invalid
from redkey.errors import FetchRefused, Finding, WireRefused
from redkey.http.problems import Declined
from redkey.services.card_signatures import PinnedKeys, load_pinned
from redkey.services.cards import TakenIn, take_in
from redkey.services.safe_fetch import FetchPolicy, safe_fetch
from redkey.services.use_cases.texts import refuse_secrets
from redkey.wire.lint import Registry


class Intake(msgspec.Struct, frozen=True):
    """A card that was taken in, and where it was found if it was fetched."""

    card: TakenIn
    url: str


async def fetch_card(call: Call, url: str) -> Intake:
    """The card at a URL; refused when it may not be called, or nothing fitting is there."""
    settings = call.services.config.cards
    policy = FetchPolicy(private=settings.allow_private, ports=frozenset({443, *settings.ports}))
    try:
        fetched = await safe_fetch(url, policy)
    except FetchRefused as refused:
        finding = Finding(refused.code, "/agentCardUrl", refused.message)
        raise Declined(422, refused.code, refused.message, findings=[finding]) from refused
    return Intake(take_card(call, fetched.value, under="/agentCard"), fetched.url)


def take_card(call: Call, value: Any, *, under: str) -> TakenIn:
    """A card as the registry keeps it; everything wrong with it is told at its place in the request."""
    refuse_secrets(call, value, under=under)
    try:
        return take_in(value, _pinned(call.services.config.cards.pinned_keys), registry_of(call))
    except WireRefused as refused:
        raise invalid(
            [Finding(one.code, under + one.pointer, one.message, one.severity) for one in refused.findings()]
        ) from refused


@cache
def _pinned(paths: tuple[str, ...]) -> PinnedKeys:
    return load_pinned(paths)


def registry_of(call: Call) -> Registry:
    """The agents and roles that a card of this workspace may name."""
    world = call.services.coordinator.peek(call.topic)
    return Registry(frozenset(world.slugs), frozenset(world.roles), frozenset())
