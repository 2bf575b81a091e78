"""A2A Agent Cards as strangers write them, 0.x (`url`) and 1.0 (`supportedInterfaces`), read into one typed form.

A tolerant reader with bounds: fields nobody asked for are ignored, what is read has a type and a limit, and every
text is data from a stranger. The RedKey Agent Card of seed 000 is `card`'s; who an agent becomes in a workspace is
decided by `redkey.services.cards`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from redkey.errors import Finding, WireRefused, pointer

SLUG_LIMIT = 32
CAPABILITIES_LIMIT = 256

Short = Annotated[str, Meta(max_length=256)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(max_length=8192)]
Url = Annotated[str, Meta(min_length=1, max_length=2048)]
Modes = Annotated[list[Short], Meta(max_length=32)]


class Interface(msgspec.Struct, frozen=True, rename="camel"):
    """Where an agent is reached and what it speaks there."""

    url: Url
    protocol_binding: Short = ""
    # What 0.x calls the binding.
    transport: Short = ""
    protocol_version: Short = ""


class Provider(msgspec.Struct, frozen=True, rename="camel"):
    """Who runs the agent, by its own word."""

    organization: Short = ""
    url: Annotated[str, Meta(max_length=2048)] = ""


class Skill(msgspec.Struct, frozen=True, rename="camel"):
    """One thing the agent says it can do; `id` and `tags` become capabilities."""

    id: Name
    name: Short = ""
    description: Text = ""
    tags: Annotated[list[Short], Meta(max_length=32)] = []


class Signature(msgspec.Struct, frozen=True, rename="camel"):
    """One JWS over the card (RFC 7515, flattened, detached)."""

    protected: Annotated[str, Meta(max_length=4096)]
    signature: Annotated[str, Meta(max_length=2048)]


class Authentication(msgspec.Struct, frozen=True, rename="camel"):
    """How the oldest cards ask callers to authenticate."""

    schemes: Annotated[list[Short], Meta(max_length=32)] = []


class A2aCard(msgspec.Struct, frozen=True, rename="camel"):
    """What RedKey reads of an A2A card."""

    name: Name
    description: Text = ""
    version: Short = ""
    url: Annotated[str, Meta(max_length=2048)] = ""
    protocol_version: Short = ""
    preferred_transport: Short = ""
    supported_interfaces: Annotated[list[Interface], Meta(max_length=16)] = []
    additional_interfaces: Annotated[list[Interface], Meta(max_length=16)] = []
    provider: Provider | None = None
    skills: Annotated[list[Skill], Meta(max_length=128)] = []
    capabilities: Annotated[dict[str, Any], Meta(max_length=32)] = {}
    security_schemes: Annotated[dict[Short, dict[str, Any]], Meta(max_length=32)] = {}
    authentication: Authentication | None = None
    default_input_modes: Modes = []
    default_output_modes: Modes = []
    signatures: Annotated[list[Signature], Meta(max_length=16)] = []

    def interfaces(self) -> list[Interface]:
        """Where the agent is reached, the preferred place first, whatever the shape of the card."""
        if self.supported_interfaces:
            return self.supported_interfaces
        first = [Interface(self.url, self.preferred_transport, "", self.protocol_version)] if self.url else []
        others = [one for one in self.additional_interfaces if one.url != self.url or one.transport]
        return [*first, *others]


def read_a2a_card(value: Any) -> A2aCard:
    """The card in a decoded JSON value; WireRefused when it is none."""
    try:
        card = msgspec.convert(value, A2aCard)
    except msgspec.ValidationError as refused:
        raise WireRefused([_finding(str(refused))]) from refused
    findings = [
        Finding("card_url", pointer([*path]), "an endpoint is an absolute http or https URL without credentials")
        for path, url in _urls(card)
        if not _is_endpoint(url)
    ]
    if not card.name.strip():
        findings.append(Finding("card_name", "/name", "the name says nothing"))
    if len(capabilities(card)) > CAPABILITIES_LIMIT:
        text = f"skills and tags name {len(capabilities(card))} capabilities; the limit is {CAPABILITIES_LIMIT}"
        findings.append(Finding("card_capabilities", "/skills", text))
    if findings:
        raise WireRefused(findings)
    return card


def capabilities(card: A2aCard) -> tuple[str, ...]:
    """What the card says its agent can do: the ids and tags of its skills, as slugs, in the order of the card."""
    words = [word for skill in card.skills for word in (skill.id, *skill.tags)]
    return slugs(words)


def slugs(words: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Words as distinct slugs; words without a letter or digit are left out."""
    return tuple(dict.fromkeys(made for word in words if (made := slug(word))))


def slug(text: str, separator: str = "_") -> str:
    """A name for machines made from a name for people; empty when nothing of it can stand in one."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    joined = re.sub(r"[^a-z0-9._-]+", separator, plain)
    return joined.strip("._-")[:SLUG_LIMIT].rstrip("._-")


def _urls(card: A2aCard) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = [(("url",), card.url)] if card.url else []
    for field, listed in (
        ("supportedInterfaces", card.supported_interfaces),
        ("additionalInterfaces", card.additional_interfaces),
    ):
        found.extend(((field, index, "url"), one.url) for index, one in enumerate(listed))
    return found


def _is_endpoint(url: str) -> bool:
    """Whether a URL may be shown as an endpoint. It is never called from here; whoever does checks it again."""
    if not re.fullmatch(r"[!-\[\]-~]+", url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _finding(text: str) -> Finding:
    """msgspec says `... - at `$.skills[3].id``; a pointer says the same to programs."""
    message, _, place = text.partition(" - at `$")
    steps = re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", place.rstrip("`"))
    missing = re.search(r"missing required field `([^`]+)`", message)
    path = [name or index for name, index in steps] + ([missing[1]] if missing else [])
    return Finding("card_invalid", pointer(path), message[:1].lower() + message[1:])
