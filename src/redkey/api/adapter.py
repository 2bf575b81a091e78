"""The adapter: from a request to a handler and back, with as little between as there can be.

It owns the order of the checks (path, method, key, scope, rate, body, query), so that nobody learns anything
before the checks that come first, and it turns every error into a problem.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
import structlog

from redkey.api.auth import Authenticator
from redkey.api.call import Call, Raw, Services
from redkey.api.metrics import Metrics
from redkey.commands.caller import Caller
from redkey.http import problems
from redkey.http.exchange import Exchange, header_lines
from redkey.http.problems import Declined
from redkey.http.request import BodyReader, Empty, QueryReader, check_media, read_body
from redkey.http.route import Route, Table

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_log = structlog.get_logger("redkey.api")
_encode = msgspec.json.Encoder().encode
_NOBODY = Caller("", "", frozenset())
# What every answer carries: nothing here is for a browser to run, guess or keep.
SECURITY: Headers = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
_CLOSE = (b"connection", b"close")
_JSON = header_lines([(b"content-type", b"application/json"), *SECURITY])
_PROBLEM = header_lines([(b"content-type", problems.MEDIA_TYPE.encode()), *SECURITY])


class Stream:
    """A reply that writes itself as long as it likes: the handler returns one, the adapter hands it the wires."""

    async def run(self, receive: Receive, send: Send) -> int:
        """Send everything; the status that was sent."""
        raise NotImplementedError


class Endpoint:
    """A route made ready to be called."""

    __slots__ = ("body", "body_limit", "observe", "query", "route", "scopes", "takes_key")

    def __init__(self, route: Route, services: Services, metrics: Metrics) -> None:
        self.route = route
        self.scopes = frozenset(route.scopes) if route.scopes == ("operator",) else frozenset((*route.scopes, "admin"))
        self.body = BodyReader(route.body or Empty) if route.writes and not route.streamed else None
        self.query = QueryReader(route.query)
        self.body_limit: int = getattr(services.config.limits, route.body_limit)
        self.takes_key = route.takes_key
        self.observe = metrics.observer(route.method, route.path)


class Api:
    """The HTTP application."""

    def __init__(
        self, routes: Iterable[Route], services: Services, authenticator: Authenticator, metrics: Metrics
    ) -> None:
        self.routes = tuple(routes)
        # Requests that are being answered, streams included.
        self.open = 0
        self._services, self._authenticator = services, authenticator
        self._access_log = services.config.access_log
        self._table = Table((route, Endpoint(route, services, metrics)) for route in self.routes)
        self._observe_unknown = metrics.observer("any", "unknown")

    async def __call__(self, exchange: Exchange) -> None:
        """Answer a request."""
        self.open += 1
        begun = time.perf_counter()
        observe = self._observe_unknown
        told: Headers = []
        try:
            endpoint, path = self._find(exchange)
            observe = endpoint.observe
            reply, told = await self._call(endpoint, path, exchange)
            if isinstance(reply, Stream):
                observe(await reply.run(exchange.receive, exchange.send), time.perf_counter() - begun)
                return
            status, head = endpoint.route.status, _JSON
            if type(reply) is Raw:
                status, body = reply.status, reply.body
                head = header_lines([(b"content-type", reply.media.encode()), *_security_of(reply)])
            else:
                body = _encode(reply)
        except ConnectionResetError:
            return
        except Exception as error:
            status, head, body, told = self._refuse(exchange, error, told)
        finally:
            self.open -= 1
        took = time.perf_counter() - begun
        observe(status, took)
        if self._access_log:
            _log.info("request", method=exchange.method, path=exchange.path, status=status, seconds=round(took, 6))
        await exchange.reply(status, head + header_lines(told) if told else head, body)

    @staticmethod
    def _refuse(exchange: Exchange, error: Exception, told: Headers) -> tuple[int, bytes, bytes, Headers]:
        """What an error is to the caller: status, header lines, body, further headers."""
        answer = problems.answer(error)
        if answer.status >= 500:
            _log.error("request failed", path=exchange.path, status=answer.status, exc_info=error)
        if _CLOSE in answer.headers:
            exchange.keep_alive = False
        further = [header for header in (*answer.headers, *told) if header != _CLOSE]
        return answer.status, _PROBLEM, answer.body, further

    def _find(self, exchange: Exchange) -> tuple[Endpoint, dict[str, str]]:
        found = self._table.find(exchange.path)
        if found is None:
            raise Declined(404, "path_not_found", f"There is nothing at {exchange.path[:200]}.")
        methods, segments = found
        method = exchange.method
        endpoint, names = methods.get("GET" if method == "HEAD" else method, (None, ()))
        if endpoint is None or (method == "HEAD" and endpoint.route.streamed):
            allow = ", ".join(sorted(methods))
            raise Declined(
                405, "method_not_allowed", f"{method[:16]} is not a method of this path.", headers={"allow": allow}
            )
        return endpoint, {name: segments[index] for name, index in names}

    async def _call(self, endpoint: Endpoint, path: dict[str, str], exchange: Exchange) -> tuple[Any, Headers]:
        route, headers = endpoint.route, exchange.headers
        caller, topic = _NOBODY, ""
        told: Headers = []
        if route.scopes:
            principal, told = self._authenticator.admit(headers, exchange.connection.address, looks=not route.writes)
            caller, topic = principal.caller, principal.topic
            if endpoint.scopes.isdisjoint(caller.scopes):
                raise _insufficient(route)
        call = Call(self._services, route, caller, topic, path, exchange)
        reader = endpoint.body
        if reader is None:
            call.query = endpoint.query.read(exchange.query)
            return await route.handler(call), told
        limit = endpoint.body_limit
        # Almost every body has come whole.
        data = exchange.take_whole(limit)
        if data is None:
            data = await read_body(exchange, limit)
        if data:
            check_media(headers)
        call.query = endpoint.query.read(exchange.query)
        body = reader.read(data, limit)
        if endpoint.takes_key:
            key = idempotency_key(headers, body)
            if key:
                call.identify(key, b"%b?%b" % (exchange.path.encode(), exchange.query), data)
        return await (route.handler(call, body) if route.body is not None else route.handler(call)), told


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


def _insufficient(route: Route) -> Declined:
    wanted = " or ".join(route.scopes)
    return Declined(
        403,
        "insufficient_scope",
        f"This needs a key with the scope {wanted}.",
        headers={"www-authenticate": f'Bearer error="insufficient_scope", scope="{" ".join(route.scopes)}"'},
    )


def _security_of(reply: Raw) -> Headers:
    """A page that a browser shows brings its own policy."""
    own = {name for name, _ in reply.headers}
    return [*reply.headers, *(header for header in SECURITY if header[0] not in own)]
