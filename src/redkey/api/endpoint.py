"""Endpoints: routes with everything precomputed that is the same for every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from redkey.api.call import Call, Raw, Services
from redkey.api.metrics import Metrics
from redkey.errors import Finding
from redkey.http.problems import Declined
from redkey.http.request import BodyReader, Empty, QueryReader
from redkey.http.route import Route
from redkey.services.use_case import UseCase
from redkey.shapes.operation import Operation

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

encode = msgspec.json.Encoder().encode


class Stream:
    """A reply that is sent in pieces: the handler returns it and the adapter runs it."""

    async def run(self, receive: Receive, send: Send) -> int:
        """Send everything; return the status that was sent."""
        raise NotImplementedError


class Endpoint:
    """A route with its body and query readers, limits and metrics."""

    def __init__(self, route: Route, services: Services, metrics: Metrics) -> None:
        self.operation = operation = route.operation
        self.status, self.takes_key = operation.status, operation.takes_key
        # The rule of the use case: the adapter applies it before it reads the body.
        self.judge = UseCase(operation, route.handler).judge
        # is_open: needs no key. reads: changes nothing.
        self.is_open, self.reads = not operation.scopes, not operation.writes
        kind = Any if operation.loose else operation.body or Empty
        self.body = (
            BodyReader(kind, _bare_plan if _takes_plan(operation) else None)
            if operation.writes and not operation.streamed
            else None
        )
        takes_body = operation.takes_body and self.body is not None
        self.handler: Callable[[Call, Any], Any] = route.handler if takes_body else _without_body(route)
        self.query = QueryReader(operation.query)
        self.body_limit: int = getattr(services.config.limits, operation.body_limit)
        self.observe = metrics.observer(operation.method, operation.path)


def _takes_plan(operation: Operation) -> bool:
    return operation.body is not None and "plan" in operation.body.__struct_fields__


def _bare_plan(value: Any) -> list[Finding]:
    """Tell who sent plan.json itself how it is sent."""
    if not isinstance(value, dict) or "plan" in value or not {"tasks", "roles"} & value.keys():
        return []
    return [Finding("plan_bare", "/plan", 'the body is a plan itself; send it in the field `plan`: {"plan": {...}}')]


def _without_body(route: Route) -> Callable[[Call, Any], Any]:
    def handler(call: Call, body: Any) -> Any:
        return route.handler(call)

    return handler


def render(call: Call, reply: Any) -> tuple[int, str, bytes]:
    """The status, media type and bytes of a reply."""
    if isinstance(reply, Raw):
        return reply.status, reply.media, reply.body
    return call.endpoint.status, "application/json", encode(reply)


def idempotency_key(headers: Mapping[bytes, bytes], body: Any) -> str:
    """The key of a request, from its header or its body; if both are set they must be equal."""
    in_body = getattr(body, "idempotency_key", None) or ""
    in_header = headers.get(b"idempotency-key", b"").decode("latin-1")
    if not in_body and not in_header:
        return ""
    if in_body and in_header and in_body != in_header:
        raise Declined(422, "idempotency_key_mismatch", "The Idempotency-Key header and the body's key differ.")
    key = in_header or in_body
    if len(key) > 255 or not (key.isascii() and key.isprintable()):
        raise Declined(422, "idempotency_key_invalid", "An idempotency key has 1 to 255 printable ASCII characters.")
    return key
