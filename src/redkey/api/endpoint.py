"""Endpoints: routes made ready to be called, with everything about them that is the same for every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from redkey.api.call import Call, Raw, Services
from redkey.api.metrics import Metrics
from redkey.http.problems import Declined
from redkey.http.request import BodyReader, Empty, QueryReader
from redkey.http.route import Route

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

encode = msgspec.json.Encoder().encode


class Stream:
    """A reply that is sent piece by piece: the handler returns one, the adapter runs it."""

    async def run(self, receive: Receive, send: Send) -> int:
        """Send everything; the status that was sent."""
        raise NotImplementedError


class Endpoint:
    """A route made ready to be called."""

    __slots__ = (
        "body",
        "body_limit",
        "handler",
        "is_open",
        "looks",
        "observe",
        "operation",
        "query",
        "scopes",
        "status",
        "takes_key",
    )

    def __init__(self, route: Route, services: Services, metrics: Metrics) -> None:
        self.operation = operation = route.operation
        self.status, self.takes_key, self.scopes = operation.status, operation.takes_key, operation.allowed_scopes
        # is_open: it needs no key. looks: it changes nothing.
        self.is_open, self.looks = not operation.scopes, not operation.writes
        kind = Any if operation.loose else operation.body or Empty
        self.body = BodyReader(kind) if operation.writes and not operation.streamed else None
        takes_body = operation.body is not None and self.body is not None
        self.handler: Callable[[Call, Any], Any] = route.handler if takes_body else _without_body(route)
        self.query = QueryReader(operation.query)
        self.body_limit: int = getattr(services.config.limits, operation.body_limit)
        self.observe = metrics.observer(operation.method, operation.path)


def _without_body(route: Route) -> Callable[[Call, Any], Any]:
    def handler(call: Call, body: Any) -> Any:
        return route.handler(call)

    return handler


def render(call: Call, reply: Any) -> tuple[int, str, bytes]:
    """The status, the media type and the bytes of a reply."""
    if isinstance(reply, Raw):
        return reply.status, reply.media, reply.body
    return call.endpoint.status, "application/json", encode(reply)


def idempotency_key(headers: Mapping[bytes, bytes], body: Any) -> str:
    """The key of a request, from its header or its body; both given must be equal."""
    stated = getattr(body, "idempotency_key", None) or ""
    given = headers.get(b"idempotency-key", b"").decode("latin-1")
    if not stated and not given:
        return ""
    if stated and given and stated != given:
        raise Declined(422, "idempotency_key_mismatch", "The Idempotency-Key header and the body's key differ.")
    key = given or stated
    if len(key) > 255 or not (key.isascii() and key.isprintable()):
        raise Declined(422, "idempotency_key_invalid", "An idempotency key has 1 to 255 printable ASCII characters.")
    return key
