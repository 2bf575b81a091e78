"""A call: one request as the HTTP API sees it, around the caller that use cases see."""

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
    """What the API works with beside the means of use cases."""

    metrics: Metrics
    limiter: Limiter
    logins: Logins
    # Every operation of the server, as its documentation lists them.
    operations: tuple[Operation, ...]


class Raw(msgspec.Struct, frozen=True):
    """A reply that is not the route's struct: bytes of some media type, another status, headers."""

    body: bytes
    media: str = "application/json"
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Call(Caller):
    """One request."""

    # The parameters of the path: known once the adapter has admitted it.
    path: dict[str, str]
    query: Any = None
    # Further headers of the reply.
    told: Sequence[tuple[bytes, bytes]] = ()
    # True once the reply was sent, or the caller has gone.
    over = False

    def __init__(self, services: Services, exchange: Exchange, endpoint: Endpoint, begun: float) -> None:
        """`begun` is when the request came."""
        self.means = self.services = services
        self.exchange, self.endpoint, self.begun = exchange, endpoint, begun

    async def while_here(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work gives; it ends when the caller disconnects."""
        return await self.exchange.while_connected(work)

    def accepts(self, media: bytes) -> bool:
        """True when the caller asks for this media type by name."""
        return media in self.exchange.headers.get(b"accept", b"")
