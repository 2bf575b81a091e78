"""Agent Cards: reads an A2A card of either version or a RedKey Agent Card into one form.

Nothing in a card is trusted. It is bounded data: its text is kept and shown as text, its skills are the agent's own
claims, and its signature counts only under a key that the operator pinned, never under one that the card itself points
at (`jku`, `jwk`, `x5u`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.errors import Finding, WireRefused
from redkey.services.card_signatures import PinnedKeys
from redkey.shapes.agents import AuthRequirement, Endpoint, Skill
from redkey.wire.a2a_card import A2aCard, capabilities, read_a2a_card, slug, slugs
from redkey.wire.canonical import canonical
from redkey.wire.card import AgentCard, read_card
from redkey.wire.lint import Registry, lint_card

CARD_BYTES = 64 * 1024
# Names with another meaning wherever a slug is read.
RESERVED = frozenset({"human", "system", "exec", "runner"})


class NormalCard(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The one form that all cards are converted to."""

    name: str
    format: str
    description: str = ""
    version: str = ""
    provider: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    skills: tuple[Skill, ...] = ()
    auth_requirements: tuple[AuthRequirement, ...] = ()
    # Protocol capabilities: streaming, pushNotifications and the like.
    features: tuple[str, ...] = ()


class TakenIn(msgspec.Struct, frozen=True):
    """A card ready for registration. `slug_given` says that the card names its slug itself."""

    card: dict[str, Any]
    normal: NormalCard
    slug: str
    slug_given: bool
    capabilities: tuple[str, ...]
    verified_by: str
    warnings: tuple[Finding, ...]


def take_in(value: object, keys: PinnedKeys, registry: Registry | None = None) -> TakenIn:
    """Read the card in a decoded JSON value; WireRefused with everything that is wrong."""
    if not isinstance(value, dict):
        raise WireRefused([Finding("card_invalid", "", "an agent card is a JSON object")])
    if len(canonical(value)) > CARD_BYTES:
        raise WireRefused([Finding("card_too_large", "", f"the card is larger than {CARD_BYTES:,} bytes")])
    if "card_version" in value or "identity" in value:
        return _redkey(value, registry)
    return _a2a(value, keys)


def _a2a(value: dict[str, Any], keys: PinnedKeys) -> TakenIn:
    card = read_a2a_card(value)
    warnings = []
    if not card.interfaces():
        warnings.append(
            Finding(
                "endpoint_missing",
                "/url",
                "the card names no endpoint; the agent can claim tasks, but cannot be called",
                "warning",
            )
        )
    verified_by = keys.verify(value, card.signatures) if card.signatures else ""
    if card.signatures and not verified_by:
        text = "no signature is by a key that this server has pinned; the card counts as unverified"
        warnings.append(Finding("signature_unknown", "/signatures", text, "warning"))
    made = slug(card.name, "-") or "agent"
    return TakenIn(
        card=value,
        normal=_normal_a2a(card),
        slug=f"{made}-agent"[:32] if made in RESERVED else made,
        slug_given=False,
        capabilities=capabilities(card),
        verified_by=verified_by,
        warnings=tuple(warnings),
    )


def _normal_a2a(card: A2aCard) -> NormalCard:
    endpoints = tuple(
        Endpoint(
            url=one.url,
            binding=one.protocol_binding or one.transport,
            protocol_version=one.protocol_version or card.protocol_version,
        )
        for one in card.interfaces()
    )
    return NormalCard(
        name=card.name,
        format="a2a/1.0" if card.supported_interfaces else "a2a/0.x",
        description=card.description,
        version=card.version,
        provider=card.provider.organization if card.provider is not None else "",
        endpoints=endpoints,
        skills=tuple(
            Skill(id=one.id, name=one.name, description=one.description, tags=tuple(one.tags)) for one in card.skills
        ),
        auth_requirements=_auth(card),
        features=tuple(sorted(name for name, value in card.capabilities.items() if value is True)),
    )


def _auth(card: A2aCard) -> tuple[AuthRequirement, ...]:
    named = [AuthRequirement(name=name, type=_scheme_type(scheme)) for name, scheme in card.security_schemes.items()]
    older = card.authentication.schemes if card.authentication is not None else []
    return (*named, *(AuthRequirement(name=scheme, type=scheme.lower()) for scheme in older))


def _scheme_type(scheme: Mapping[str, Any]) -> str:
    """Convert an authentication scheme: 0.x has `type: http`; 1.0 wraps the scheme in a field such as
    `httpAuthSecurityScheme`.
    """
    stated = scheme.get("type")
    if isinstance(stated, str):
        return stated[:64]
    wrapped = next((name for name in scheme if name.endswith("SecurityScheme")), "")
    return wrapped.removesuffix("SecurityScheme")[:64]


def _redkey(value: dict[str, Any], registry: Registry | None) -> TakenIn:
    card = read_card(value)
    findings = lint_card(card)
    errors = [finding for finding in findings if finding.severity == "error"]
    if card.identity.slug in RESERVED:
        errors.append(Finding("slug_reserved", "/identity/slug", f"{card.identity.slug!r} is a reserved name"))
    if errors:
        raise WireRefused(errors)
    return TakenIn(
        card=value,
        normal=_normal_redkey(card),
        slug=card.identity.slug,
        slug_given=True,
        capabilities=slugs(card.capabilities),
        verified_by="",
        warnings=(*findings, *_unknown_names(card, findings, registry)),
    )


def _unknown_names(card: AgentCard, findings: list[Finding], registry: Registry | None) -> list[Finding]:
    """Report names that are not registered yet. Agents may name each other before both exist: these are warnings."""
    if registry is None:
        return []
    # Output contracts are not registered yet, so a card may name any.
    registry = msgspec.structs.replace(registry, output_types=frozenset(card.output_types))
    unknown = [finding for finding in lint_card(card, registry) if finding not in findings]
    return [Finding(one.code, one.pointer, one.message, "warning") for one in unknown]


def _normal_redkey(card: AgentCard) -> NormalCard:
    return NormalCard(
        name=card.identity.name,
        format=f"redkey/{card.card_version}",
        description=card.scope,
        skills=tuple(Skill(id=made, name=phrase) for phrase in card.capabilities if (made := slug(phrase))),
    )
