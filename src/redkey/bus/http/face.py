"""The HTTP face: paths, methods, bodies and errors around the handlers.

Who may call is asked of a gate that whoever hosts the face brings: a token on this machine, or API keys. Errors are
`{"error": text, "code": code}`; the text is what older clients look for, the code is what new ones should.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import orjson
import structlog

from redkey.bus.bus import Bus
from redkey.bus.http import events, messages, sessions
from redkey.bus.http.call import Answer, BusCaller, Call, Exchange, Headers
from redkey.bus.http.origin import KnownHosts
from redkey.errors import BusRefused, JsonRefused, RedKeyError
from redkey.wire.decode import decode

_log = structlog.get_logger("redkey.bus.http")
BODY_LIMIT = 1024 * 1024
# Who a request comes from; BusRefused when it may not be answered.
Gate = Callable[[Exchange], BusCaller]
Handler = Callable[..., Awaitable[Answer]]

_SESSION, _AGENT, _MESSAGE = "/sessions/{session_id}", "/agents/{agent_id}", "/messages/{message_id}"
_ROUTES: list[tuple[str, str, Any, type | None]] = [
    ("GET", "/sessions", sessions.list_sessions, None),
    ("POST", "/sessions", sessions.create_session, sessions.NewSession),
    ("GET", "/sessions/stream", events.SessionStream, None),
    ("GET", _SESSION, sessions.read_session, None),
    ("POST", f"{_SESSION}/close", sessions.close_session, None),
    ("GET", f"{_SESSION}/agents", sessions.list_agents, None),
    ("POST", f"{_SESSION}/agents", sessions.create_agent, sessions.NewAgent),
    ("POST", f"{_SESSION}/agents/order", sessions.order_agents, sessions.Order),
    ("PATCH", f"{_SESSION}{_AGENT}", sessions.change_agent, sessions.AgentChange),
    ("DELETE", f"{_SESSION}{_AGENT}", sessions.delete_agent, None),
    ("GET", f"{_SESSION}{_AGENT}/messages", messages.waiting, None),
    ("POST", f"{_SESSION}/messages", messages.send, messages.NewMessage),
    ("GET", f"{_SESSION}{_MESSAGE}", messages.read, None),
    ("POST", f"{_SESSION}{_MESSAGE}/ack", messages.acknowledge, messages.Taken),
    ("GET", f"{_SESSION}/events", events.list_events, None),
    ("GET", f"{_SESSION}/events/stream", events.EventStream, None),
]
_STATUS = {
    "unauthenticated": 401,
    "host_refused": 403,
    "origin_refused": 403,
    "insufficient_scope": 403,
    "agent_forbidden": 403,
    "path_not_found": 404,
    "session_not_found": 404,
    "agent_not_found": 404,
    "message_not_found": 404,
    "method_not_allowed": 405,
    "session_closed": 409,
    "loop_stopped": 409,
    "not_owner": 409,
    "conversation_owned": 409,
    "session_exists": 409,
    "agent_taken": 409,
    "id_reused": 409,
    "request_in_flight": 409,
    "body_too_large": 413,
    "media_type": 415,
    "idempotency_key_reused": 422,
    "mailbox_full": 429,
    "bus_full": 503,
    "too_many_sessions": 503,
    "too_many_agents": 503,
    "unavailable": 503,
    "no_ledger": 409,
    "secret_detected": 422,
    "recipient_unknown": 422,
    "rate_limited": 429,
}


class _Route(msgspec.Struct, frozen=True):
    """A way in."""

    method: str
    pattern: re.Pattern[str]
    handler: Any
    body: type | None


def _compiled(routes: list[tuple[str, str, Any, type | None]]) -> list[_Route]:
    return [
        _Route(method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), handler, body)
        for method, path, handler, body in routes
    ]


class HttpFace:
    """The bus behind `/api`."""

    def __init__(
        self,
        bus: Bus,
        gate: Gate,
        hosts: KnownHosts,
        *,
        prefix: str = "/api",
        more: list[tuple[str, str, Any, type | None]] | None = None,
    ) -> None:
        """`more` are further routes of whoever hosts the face."""
        self._bus, self._gate, self._hosts, self._prefix = bus, gate, hosts, prefix
        # Searched in this order: a path of fixed words stands before one that takes anything in their place.
        self._routes = _compiled([*(more or []), *_ROUTES])
        self._flights: set[tuple[str, str]] = set()
        self._streams: set[asyncio.Task[Any]] = set()

    async def __call__(self, exchange: Exchange) -> None:
        try:
            answer = await self._answer(exchange)
        except (BusRefused, JsonRefused) as refused:
            status = _STATUS.get(refused.code, 400)
            answer = Answer(status, {"error": refused.message, "code": refused.code})
        except RedKeyError as failed:
            _log.error("a request failed", path=exchange.path[:200], code=failed.code, reason=failed.message)
            answer = Answer(503, {"error": "weave coordinator unavailable", "code": "unavailable"})
        if answer is not None:
            _respond(exchange, answer)

    def begin_stop(self) -> None:
        """End those who follow."""
        for task in tuple(self._streams):
            task.cancel()

    async def _answer(self, exchange: Exchange) -> Answer | None:
        headers = exchange.headers
        self._hosts(exchange)
        if exchange.path == f"{self._prefix}/health" and exchange.method in ("GET", "HEAD"):
            # It tells nothing but that the bus answers, so it asks for no token.
            return Answer(200, {"status": "ok"})
        caller = self._gate(exchange)
        method = "GET" if exchange.method == "HEAD" else exchange.method
        route, names = self._find(method, exchange.path.removeprefix(self._prefix))
        if method != "GET" and not caller.may_write:
            raise BusRefused("this key may only read", code="insufficient_scope")
        data = await _read_body(exchange.receive, headers) if method != "GET" else b""
        try:
            query = dict(parse_qsl(exchange.query.decode("latin-1"), keep_blank_values=True, max_num_fields=32))
        except ValueError:
            raise BusRefused("the query has too many fields", code="query_invalid") from None
        call = Call(self._bus, caller, method, exchange.path, names, query, headers, data)
        if isinstance(route.handler, type):
            if exchange.method == "HEAD":
                raise BusRefused("a stream has no end to be told of", code="method_not_allowed")
            await self._stream(route.handler(call), exchange)
            return None
        arguments = [_body(route.body, headers, data)] if route.body is not None else []
        return await self._once(call, route.handler, arguments)

    async def _once(self, call: Call, handler: Handler, arguments: list[Any]) -> Answer:
        if not call.key:
            return await handler(call, *arguments)
        before = call.repeated()
        if before is not None:
            return before
        flight = call.scope, call.key
        if flight in self._flights:
            raise BusRefused("a request of this Idempotency-Key is being answered", code="request_in_flight")
        self._flights.add(flight)
        try:
            return await handler(call, *arguments)
        finally:
            self._flights.discard(flight)

    async def _stream(self, stream: Any, exchange: Exchange) -> None:
        task = asyncio.ensure_future(stream.run(exchange))
        self._streams.add(task)
        try:
            await task
        except asyncio.CancelledError:
            # Cancelled by a stop: the follower comes back with its last id.
            if not task.cancelled():
                task.cancel()
                raise
        finally:
            self._streams.discard(task)

    def _find(self, method: str, path: str) -> tuple[_Route, dict[str, str]]:
        others = []
        for route in self._routes:
            found = route.pattern.fullmatch(path)
            if found is None:
                continue
            if route.method == method:
                return route, found.groupdict()
            others.append(route.method)
        if others:
            message = f"this path takes {', '.join(sorted(set(others)))}"
            raise BusRefused(message, code="method_not_allowed")
        raise BusRefused(f"there is nothing at {path[:200]}", code="path_not_found")


async def _read_body(receive: Any, headers: Headers) -> bytes:
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > BODY_LIMIT:
        raise BusRefused(f"a body has at most {BODY_LIMIT:,} bytes", code="body_too_large")
    data, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BusRefused("the caller is gone", code="gone")
        data, more = data + message.get("body", b""), message.get("more_body", False)
        if len(data) > BODY_LIMIT:
            raise BusRefused(f"a body has at most {BODY_LIMIT:,} bytes", code="body_too_large")
    return data


def _body(kind: type, headers: Headers, data: bytes) -> Any:
    if data and b"json" not in headers.get(b"content-type", b"application/json"):
        # A page of somebody else can make a browser post a form, and not JSON without asking.
        raise BusRefused("a body is application/json", code="media_type")
    value = decode(data or b"{}", size_limit=BODY_LIMIT)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as cause:
        raise BusRefused(f"the body is wrong: {cause}", code="body_invalid") from None


def _respond(exchange: Exchange, answer: Answer) -> None:
    body = orjson.dumps(answer.body) if answer.body is not None else b""
    head = b"cache-control: no-store\r\nx-content-type-options: nosniff\r\n"
    if body:
        head += b"content-type: application/json\r\n"
    if answer.status == 401:
        head += b'www-authenticate: Bearer realm="redkey"\r\n'
    exchange.reply(answer.status, head, body)
