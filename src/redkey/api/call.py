"""A call: one request of the HTTP API, as an extension of the caller that use cases see."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from redkey.api.logins import Logins
from redkey.api.metrics import Metrics
from redkey.http.exchange import Exchange
from redkey.http.limits import Limiter
from redkey.services.caller import Caller
from redkey.services.means import Means
from redkey.shapes.operation import Operation

if TYPE_CHECKING:
    from redkey.api.endpoint import Endpoint

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Services(Means):
    """What the API needs beyond the services of use cases."""

    metrics: Metrics
    limiter: Limiter
    logins: Logins
    # Every operation of the server, as its documentation lists them.
    operations: tuple[Operation, ...]


class Raw(msgspec.Struct, frozen=True):
    """A reply that is not the operation's struct: bytes with a media type, a status and headers."""

    body: bytes
    media: str = "application/json"
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Call(Caller):
    """One request."""

    # The parameters of the path; set when the adapter has admitted the request.
    path: dict[str, str]
    query: Any = None
    # Headers of the reply that say how much of the rate limit is left.
    rate_headers: Sequence[tuple[bytes, bytes]] = ()
    # True once the reply was sent or the caller disconnected.
    over = False

    def __init__(self, services: Services, exchange: Exchange, endpoint: Endpoint, started: float) -> None:
        """`started` is the time when the request arrived."""
        self.means = self.services = services
        self.exchange, self.endpoint, self.started = exchange, endpoint, started
        self.address = exchange.connection.address

    async def while_here(self, work: Coroutine[Any, Any, T]) -> T:
        """Await some work; it is cancelled when the caller disconnects."""
        return await self.exchange.while_connected(work)

    def accepts(self, media: bytes) -> bool:
        """True when the caller asks for this media type by name."""
        return media in self.exchange.headers.get(b"accept", b"")
