"""Read A2A Agent Cards of other software, versions 0.x (`url`) and 1.0 (`supportedInterfaces`), into one struct.

Unknown fields are ignored; every field that is read has a type and a size limit, and its text is untrusted. The RedKey
Agent Card of seed 000 is in `card`; `redkey.services.cards` decides which agent a card becomes in a workspace.
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
    """A URL of an agent, and the protocol it speaks there."""

    url: Url
    protocol_binding: Short = ""
    # The name of the binding in 0.x.
    transport: Short = ""
    protocol_version: Short = ""


class Provider(msgspec.Struct, frozen=True, rename="camel"):
    """The organisation that runs the agent, as the card claims."""

    organization: Short = ""
    url: Annotated[str, Meta(max_length=2048)] = ""


class Skill(msgspec.Struct, frozen=True, rename="camel"):
    """A skill that the card claims; `id` and `tags` become capabilities."""

    id: Name
    name: Short = ""
    description: Text = ""
    tags: Annotated[list[Short], Meta(max_length=32)] = []


class Signature(msgspec.Struct, frozen=True, rename="camel"):
    """One JWS over the card (RFC 7515, flattened, detached)."""

    protected: Annotated[str, Meta(max_length=4096)]
    signature: Annotated[str, Meta(max_length=2048)]


class Authentication(msgspec.Struct, frozen=True, rename="camel"):
    """The authentication schemes of the oldest cards."""

    schemes: Annotated[list[Short], Meta(max_length=32)] = []


class A2aCard(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of an A2A card that RedKey reads."""

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
        """Return the interfaces of the agent, the preferred one first, for cards of both versions."""
        if self.supported_interfaces:
            return self.supported_interfaces
        first = [Interface(self.url, self.preferred_transport, "", self.protocol_version)] if self.url else []
        others = [other for other in self.additional_interfaces if other.url != self.url or other.transport]
        return [*first, *others]


def read_a2a_card(value: Any) -> A2aCard:
    """Read the card in a decoded JSON value; raise WireRefused if it is not one."""
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
        findings.append(Finding("card_name", "/name", "the name is blank"))
    if len(capabilities(card)) > CAPABILITIES_LIMIT:
        text = f"skills and tags name {len(capabilities(card))} capabilities; the limit is {CAPABILITIES_LIMIT}"
        findings.append(Finding("card_capabilities", "/skills", text))
    if findings:
        raise WireRefused(findings)
    return card


def capabilities(card: A2aCard) -> tuple[str, ...]:
    """Return the capabilities that the card claims: ids and tags of its skills as slugs, in the order of the card."""
    words = [word for skill in card.skills for word in (skill.id, *skill.tags)]
    return slugs(words)


def slugs(words: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct slugs of the words; words without a letter or digit are dropped."""
    return tuple(dict.fromkeys(name for word in words if (name := slug(word))))


def slug(text: str, separator: str = "_") -> str:
    """Return a machine-readable name for a display name; empty if no character of it is allowed in one."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    joined = re.sub(r"[^a-z0-9._-]+", separator, plain)
    return joined.strip("._-")[:SLUG_LIMIT].rstrip("._-")


def _urls(card: A2aCard) -> list[tuple[tuple[str | int, ...], str]]:
    urls: list[tuple[tuple[str | int, ...], str]] = [(("url",), card.url)] if card.url else []
    for field, listed in (
        ("supportedInterfaces", card.supported_interfaces),
        ("additionalInterfaces", card.additional_interfaces),
    ):
        urls.extend(((field, index, "url"), interface.url) for index, interface in enumerate(listed))
    return urls


def _is_endpoint(url: str) -> bool:
    """Return whether a URL may be shown as an endpoint. Code that calls a URL must check it again."""
    if not re.fullmatch(r"[!-\[\]-~]+", url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _finding(text: str) -> Finding:
    """Return an error of msgspec, such as `... - at `$.skills[3].id``, as a finding with a JSON pointer."""
    message, _, place = text.partition(" - at `$")
    steps = re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", place.rstrip("`"))
    missing = re.search(r"missing required field `([^`]+)`", message)
    path = [name or index for name, index in steps] + ([missing[1]] if missing else [])
    return Finding("card_invalid", pointer(path), message[:1].lower() + message[1:])
