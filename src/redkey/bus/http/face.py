"""The HTTP face: paths, methods, bodies and errors around the handlers.

A gate authenticates callers, by the token of this machine or by API keys. Errors are `{"error": text, "code": code}`;
existing clients read the text, new ones should read the code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import structlog

from redkey.bus.bridge import Bridge
from redkey.bus.bus import Bus
from redkey.bus.http.call import BusCaller, BusParts, BusReply, BusRequest
from redkey.bus.http.ledger import LEDGER_ROUTES
from redkey.bus.http.origin import KnownHosts
from redkey.bus.http.routes import HEALTH, ROUTES
from redkey.commands.decision import Refused
from redkey.errors import BusRefused, JsonRefused, RedKeyError
from redkey.http.exchange import Exchange, header_lines
from redkey.http.request import QueryReader, check_media, read_body
from redkey.http.route import Handler, Route, Table
from redkey.http.security import SECURITY
from redkey.services.caller import LARGE_BYTES
from redkey.wire.decode import decode

_log = structlog.get_logger("redkey.bus.http")
BODY_LIMIT = 1024 * 1024
# Authenticate the caller of a request; raise BusRefused if it fails.
Gate = Callable[[Exchange], BusCaller]
# Every route, also for the OpenAPI document.
BUS_ROUTES = (HEALTH, *ROUTES, *LEDGER_ROUTES)
_HEAD = header_lines(SECURITY)
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
    "json_too_large": 413,
    "idempotency_key_reused": 422,
    "mailbox_full": 429,
    "bus_full": 503,
    "too_many_sessions": 429,
    "too_many_agents": 429,
    "unavailable": 503,
    "no_ledger": 409,
    "rate_limited": 429,
}


class _Endpoint:
    """A route with its query reader."""

    def __init__(self, route: Route) -> None:
        self.route, self.operation, self.query = route, route.operation, QueryReader(route.operation.query)


class HttpFace:
    """The bus behind `/api`."""

    def __init__(self, bus: Bus, gate: Gate, hosts: KnownHosts, bridge: Bridge | None = None) -> None:
        """`bridge` is None if the bus has no ledger."""
        self._parts, self._gate, self._hosts = BusParts(bus, bridge), gate, hosts
        self._table = Table((route, _Endpoint(route)) for route in BUS_ROUTES)
        self._in_progress: set[tuple[str, str]] = set()
        self._large = asyncio.Lock()

    async def __call__(self, exchange: Exchange) -> None:
        try:
            answer = await self._answer(exchange)
        except (BusRefused, JsonRefused) as refused:
            status = _STATUS.get(refused.code, 400)
            answer = BusReply(status, {"error": refused.message, "code": refused.code})
        except Refused as refused:
            answer = BusReply(refused.status, {"error": refused.message, "code": refused.code})
        except ConnectionResetError:
            return
        except RedKeyError as failed:
            _log.error("a request failed", path=exchange.path[:200], code=failed.code, reason=failed.message)
            answer = BusReply(503, {"error": "weave coordinator unavailable", "code": "unavailable"})
        if answer is not None:
            _respond(exchange, answer)

    def begin_stop(self) -> None:
        """Answer the long polls, and end the streams."""
        for stream in tuple(self._parts.streams):
            stream.stop()
        for poll in tuple(self._parts.polls):
            poll.end()

    async def _answer(self, exchange: Exchange) -> BusReply | None:
        self._hosts(exchange)
        endpoint, names = self._find(exchange)
        operation = endpoint.operation
        if endpoint.route is HEALTH:
            # It shows only that the bus answers, so it needs no key.
            return BusReply(200, {"status": "ok"})
        caller = self._gate(exchange)
        exchange.connection.authenticated()
        if operation.writes and not caller.may_write:
            raise BusRefused("this key may only read", code="insufficient_scope")
        data = await read_body(exchange, BODY_LIMIT) if operation.writes else b""
        if data:
            _check_media(exchange)
        query = _query(endpoint.query, exchange)
        call = BusRequest(self._parts, caller, exchange, names, query, data)
        handler = endpoint.route.handler
        if operation.streamed:
            await handler(call)
            return None
        arguments = [await self._body(operation.body, data)] if operation.body is not None else []
        return await self._once(call, handler, arguments)

    async def _body(self, kind: type, data: bytes) -> Any:
        if len(data) <= LARGE_BYTES:
            return _parse(kind, data)
        # In a thread, one body at a time, so that the event loop stays free for other requests.
        async with self._large:
            return await asyncio.to_thread(_parse, kind, data)

    async def _once(self, call: BusRequest, handler: Handler, arguments: list[Any]) -> BusReply:
        if not call.key:
            reply: BusReply = await handler(call, *arguments)
            return reply
        before = call.repeated()
        if before is not None:
            return before
        flight = call.scope, call.key
        if flight in self._in_progress:
            raise BusRefused(
                "a request with this Idempotency-Key is in progress; retry when it is done", code="request_in_flight"
            )
        self._in_progress.add(flight)
        try:
            answer: BusReply = await handler(call, *arguments)
            return answer
        finally:
            self._in_progress.discard(flight)

    def _find(self, exchange: Exchange) -> tuple[_Endpoint, dict[str, str]]:
        match = self._table.find(exchange.path)
        if match is None:
            raise BusRefused(f"no such path: {exchange.path[:200]}", code="path_not_found")
        methods, segments = match
        method = "GET" if exchange.method == "HEAD" else exchange.method
        endpoint, names = methods.get(method, (None, ()))
        if endpoint is None or (exchange.method == "HEAD" and endpoint.operation.streamed):
            raise BusRefused(f"allowed methods: {', '.join(sorted(methods))}", code="method_not_allowed")
        return endpoint, {name: segments[index] for name, index in names}


def _check_media(exchange: Exchange) -> None:
    """Require JSON: a page of another origin can make a browser post a form, but not JSON."""
    try:
        check_media(exchange.headers)
    except Refused as refused:
        raise BusRefused(refused.message, code="media_type") from None


def _query(reader: QueryReader, exchange: Exchange) -> Any:
    try:
        return reader.read(exchange.query)
    except Refused as refused:
        raise BusRefused(refused.message, code="query_invalid", pointer=refused.pointer) from None


def _parse(kind: type, data: bytes) -> Any:
    value = decode(data or b"{}", size_limit=BODY_LIMIT)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as cause:
        raise BusRefused(f"the body is not valid: {cause}", code="body_invalid") from None


def _respond(exchange: Exchange, answer: BusReply) -> None:
    body = orjson.dumps(answer.body) if answer.body is not None else b""
    head = _HEAD
    if body:
        head += b"content-type: application/json\r\n"
    if answer.status == 401:
        head += b'www-authenticate: Bearer realm="redkey"\r\n'
    exchange.reply(answer.status, head, body)
