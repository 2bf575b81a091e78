"""Which hosts and addresses a server may call when the URL comes from an untrusted caller.

Pure: a URL is split once and built again from its parts, so that the checked URL is the one that is used. The request
itself is made by `safe_fetch`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import msgspec

from redkey.errors import FetchRefused

Address = IPv4Address | IPv6Address

_URL_LIMIT = 2048
_HOST_LIMIT = 253
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# Python calls these addresses global, but they may lead to this machine or this network: addresses that embed another
# address, and relays into networks that embed one.
_TUNNELS = (
    IPv4Network("192.88.99.0/24"),
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2001::/23"),
    IPv6Network("2002::/16"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
    IPv6Network("fec0::/10"),
)


class Target(msgspec.Struct, frozen=True):
    """A URL in its parts. `host` is an ASCII name, or an address without brackets."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    @property
    def address(self) -> Address | None:
        """Return the host as an address, if it is one."""
        return ip_address(self.host) if ":" in self.host or self.host[-1].isdigit() else None

    @property
    def authority(self) -> str:
        """Return host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"

    @property
    def resource(self) -> str:
        """Return the request target: path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.resource}"

    @property
    def is_origin(self) -> bool:
        """True if the URL names a site and no path on it."""
        return self.path == "/" and not self.query


def read_target(url: str) -> Target:
    """Split a URL into its parts; FetchRefused if it is not a web URL, or if two parsers could read it differently."""
    # Parsers disagree about the host if there is a backslash, a space or a control character.
    if len(url) > _URL_LIMIT or not re.fullmatch(r"[!-\[\]-~]+", url):
        raise _refuse("a URL is at most 2,048 printable ASCII characters without spaces and backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
    except ValueError as cause:
        raise _refuse("the URL cannot be read") from cause
    if parts.scheme not in ("https", "http"):
        raise _refuse("only https URLs are fetched")
    if "@" in parts.netloc:
        raise _refuse("a URL with credentials is not fetched")
    if not host or "%" in parts.netloc:
        raise _refuse("the host must be a plain name or address")
    if port == 0:
        raise _refuse("the port is not one that can be called")
    return Target(
        parts.scheme, _host(host), port or (443 if parts.scheme == "https" else 80), parts.path or "/", parts.query
    )


def _host(host: str) -> str:
    host = host.lower().rstrip(".")
    if ":" in host:
        return str(_address(host))
    labels = host.split(".")
    # Resolvers read 2130706433, 0177.0.0.1, 127.1 and 0x7f.1 as addresses; only the full dotted form is accepted here.
    if labels[-1].isdigit() or re.fullmatch(r"0x[0-9a-f]*", labels[-1]):
        return str(_address(host))
    if len(host) > _HOST_LIMIT or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refuse("the host is not a name that can be looked up")
    return host


def _address(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError as cause:
        raise _refuse("an address is written in full, as in 192.0.2.1 or [2001:db8::1]") from cause


def _refuse(text: str) -> FetchRefused:
    return FetchRefused(f"The URL is refused: {text}.", code="url_refused")


def is_public(address: Address) -> bool:
    """True if an address is on the public internet and nowhere else."""
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_link_local:
        return False
    return not any(address.version == network.version and address in network for network in _TUNNELS)
