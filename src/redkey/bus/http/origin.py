"""Check Host and Origin, against DNS rebinding and requests from foreign web pages.

A web page can send requests to this machine or network through a host name that it makes resolve to it. So the Host of
a request must be an address or a known name of the server, and an Origin, if present, must be too.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from redkey.errors import BusRefused
from redkey.http.exchange import Exchange

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHosts:
    """Refuses requests with an unknown Host or Origin."""

    def __init__(self, names: Iterable[str] = (), *, addresses: bool = False) -> None:
        """`names` are allowed besides those of this machine; with `addresses` so is any IP address."""
        self._names, self._addresses = LOCAL | {name.lower() for name in names if name}, addresses

    def __call__(self, exchange: Exchange) -> None:
        headers = exchange.headers
        if not self._is_known(f"//{headers.get(b'host', b'').decode('latin-1')}"):
            raise BusRefused(
                "the Host is not a name of this server; use its address, or set public_url", code="host_refused"
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_known(origin.decode("latin-1")):
            raise BusRefused("the bus does not accept requests from pages of another origin", code="origin_refused")

    def _is_known(self, url: str) -> bool:
        try:
            name = urlsplit(url).hostname or ""
            return name in self._names or (self._addresses and bool(ip_address(name)))
        except ValueError:
            return False
