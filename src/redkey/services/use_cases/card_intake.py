"""Cards as they come in: fetched if a URL is given, read, checked against the pinned keys, made a document."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from redkey.commands.decision import Refused, invalid
from redkey.errors import FetchRefused, Finding, WireRefused
from redkey.ledger.ports import Content
from redkey.services.caller import Caller
from redkey.services.card_signatures import PinnedKeys, load_pinned
from redkey.services.cards import TakenIn, take_in
from redkey.services.safe_fetch import FetchPolicy, safe_fetch
from redkey.services.use_cases.texts import keep, refuse_secrets
from redkey.wire.events import Ref
from redkey.wire.lint import Registry

# Where a card is in the body of a request; faults of a fetched one are reported at the same place.
_HERE = "/agentCard"


async def fetch_card(caller: Caller, url: str) -> tuple[TakenIn, str]:
    """Fetch the card at a URL; return it and its URL. Refused if the URL may not be called, or there is no card."""
    settings = caller.means.config.cards
    policy = FetchPolicy(private=settings.allow_private, ports=frozenset({443, *settings.ports}))
    try:
        fetched = await safe_fetch(url, policy)
    except FetchRefused as refused:
        finding = Finding(refused.code, "/agentCardUrl", refused.message)
        raise Refused(422, refused.code, refused.message, findings=[finding]) from refused
    return take_card(caller, fetched.value), fetched.url


def take_card(caller: Caller, value: object) -> TakenIn:
    """Read a card as the registry stores it; report everything wrong with it at its place in the request."""
    refuse_secrets(caller, value, under=_HERE)
    world = caller.means.coordinator.peek(caller.topic)
    # The agents and roles that a card of this workspace may name.
    registry = Registry(frozenset(world.slugs), frozenset(world.roles), frozenset())
    try:
        return take_in(value, _pinned(caller.means.config.cards.pinned_keys), registry)
    except WireRefused as refused:
        raise invalid(
            [Finding(one.code, _HERE + one.pointer, one.message, one.severity) for one in refused.findings()]
        ) from refused


@cache
def _pinned(paths: tuple[str, ...]) -> PinnedKeys:
    return load_pinned(paths)


def keep_card(
    caller: Caller, card: TakenIn, framework: str, eligible_roles: tuple[str, ...], url: str = ""
) -> tuple[Ref, Content]:
    """Turn a card into the document of its agent, with what else the registration says, and the roles that fit it."""
    able = set(card.capabilities)
    roles = caller.means.coordinator.peek(caller.topic).roles
    matches = {key: role.capabilities for key, role in roles.items() if role.capabilities}
    matches = {key: needed for key, needed in matches.items() if able.issuperset(needed)}
    document: dict[str, Any] = {
        "agentCard": card.card,
        "normal": msgspec.to_builtins(card.normal),
        "framework": framework or card.normal.format.partition("/")[0],
        "eligibleRoles": sorted({*eligible_roles, *matches}),
        "roleMatches": [{"roleId": key, "matched": list(needed)} for key, needed in sorted(matches.items())],
        "askedRoles": list(eligible_roles),
        "verifiedBy": card.verified_by,
        "warnings": [finding.as_json() for finding in card.warnings],
    }
    if url:
        document["agentCardUrl"] = url
    return keep(caller, document)
