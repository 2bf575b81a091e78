"""Which addresses the bus answers under, and which pages may call it.

A page that a browser has open can send requests to this machine or to a server of this network, by a name that it made
resolve to it. So the Host of a request must be an address or a name that the server is known by, and an Origin, when
there is one, must be such a place too.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from redkey.errors import BusRefused
from redkey.http.exchange import Exchange

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class KnownHosts:
    """Refuses requests to other names, and of pages of other places."""

    def __init__(self, names: Iterable[str] = (), *, addresses: bool = False) -> None:
        """`names` beside those of this machine; with `addresses` any IP address, which no page can make resolve."""
        self._names, self._addresses = LOCAL | {name.lower() for name in names if name}, addresses

    def __call__(self, exchange: Exchange) -> None:
        headers = exchange.headers
        if not self._is_known(f"//{headers.get(b'host', b'').decode('latin-1')}"):
            raise BusRefused(
                "the Host is no name of this server; use its address, or set public_url", code="host_refused"
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_known(origin.decode("latin-1")):
            raise BusRefused("a page of another origin may not call the bus", code="origin_refused")

    def _is_known(self, url: str) -> bool:
        try:
            name = urlsplit(url).hostname or ""
            return name in self._names or (self._addresses and bool(ip_address(name)))
        except ValueError:
            return False
