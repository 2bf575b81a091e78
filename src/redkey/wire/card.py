"""The RedKey Agent Card 1.0: the typed identity of an agent, checked against `definitions/cards/`.

`lint` checks sentences, and names that must exist in a registry.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from redkey.errors import Finding, WireRefused
from redkey.wire.schema import compile_schema

VERSION: Final = "1.0"
SCHEMA = "definitions/cards/agent-card.schema.json"
FIXTURES = "fixtures/cards"


class Identity(msgspec.Struct, frozen=True):
    """Who an agent is; `reports_to` is an agent's slug or `human`."""

    slug: str
    name: str
    department: str
    reports_to: str
    model: str


class EscalationRule(msgspec.Struct, frozen=True):
    """Whom to contact in which case, and how."""

    trigger: str
    route_to: str
    via: Literal["task.blocked", "inbox", "exec.gate"]


class Voice(msgspec.Struct, frozen=True):
    """How an agent speaks, with one example; several are read, and refused by the linter."""

    description: str
    example: str | tuple[str, ...]

    @property
    def examples(self) -> tuple[str, ...]:
        return (self.example,) if isinstance(self.example, str) else self.example


class AgentCard(msgspec.Struct, frozen=True):
    """The identity, abilities, limits and voice of one agent."""

    identity: Identity
    scope: str
    capabilities: tuple[str, ...]
    constraints: tuple[str, ...]
    escalation_rules: tuple[EscalationRule, ...]
    output_types: tuple[str, ...]
    working_style: str
    voice: Voice
    values: tuple[str, ...]
    card_version: Literal["1.0"] = VERSION


def validate_card(value: Any) -> list[Finding]:
    """List everything wrong with the shape of a decoded card; empty if it is valid."""
    if isinstance(value, dict) and value.get("card_version", VERSION) != VERSION:
        text = f"card version {repr(value['card_version'])[:40]} is not known; known: {VERSION}"
        return [Finding("unknown_version", "/card_version", text)]
    return compile_schema(SCHEMA).findings(value)


def read_card(value: Any) -> AgentCard:
    """Read the card in a decoded JSON value; raise WireRefused with every finding if it is not one."""
    findings = validate_card(value)
    if findings:
        raise WireRefused(findings)
    return msgspec.convert(value, AgentCard)


def role_name(name: str) -> str:
    """Return the plain name of a role that may be written `ba`, `role_ba` or `roles.ba`."""
    return name.removeprefix("roles.").removeprefix("role_")
