"""A call: one request as the HTTP API sees it, around the caller that use cases see."""

from __future__ import annotations

from collections.abc import Coroutine
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
    from redkey.api.adapter import Endpoint

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

    __slots__ = ("begun", "endpoint", "exchange", "over", "path", "query", "services", "told")

    # The parameters of the path: known once the adapter has admitted it.
    path: dict[str, str]

    def __init__(self, services: Services, exchange: Exchange, endpoint: Endpoint, begun: float) -> None:
        """`begun` is when the request came."""
        super().__init__(services)
        self.services, self.exchange, self.endpoint, self.begun = services, exchange, endpoint, begun
        # Further headers of the reply.
        self.told: list[tuple[bytes, bytes]] = []
        self.query: Any = None
        # True once the reply was sent, or the caller has gone.
        self.over = False

    async def while_here(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work gives; it ends when the caller disconnects."""
        return await self.exchange.while_connected(work)

    def accepts(self, media: bytes) -> bool:
        """True when the caller asks for this media type by name."""
        return media in self.exchange.headers.get(b"accept", b"")
