"""The adapter: from a request to a handler and back.

It checks path, method, key, scope, rate, body and query in this order, so that a caller learns nothing that a later
check would refuse, and it turns every error into a problem. A handler is a plain function or a coroutine. A plain
function returns its reply or a `Pending` one: then no task is created for the request, and its reply is sent as soon as
the unit that contains its command is durable.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from inspect import iscoroutine
from typing import Any

import msgspec
import structlog

from redkey import fibers
from redkey.api.auth import Authenticator
from redkey.api.call import Call, Raw, Services
from redkey.api.endpoint import Endpoint, Stream, encode, idempotency_key, render
from redkey.api.metrics import Metrics
from redkey.commands.actor import Actor
from redkey.commands.decision import KEY_REUSED, Refused
from redkey.errors import RedKeyError, StoreError
from redkey.http import problems
from redkey.http.exchange import Exchange, header_lines
from redkey.http.files import File
from redkey.http.problems import Declined
from redkey.http.request import check_media, declared_size, read_body
from redkey.http.route import Methods, Route, Table
from redkey.http.security import SECURITY
from redkey.ledger.network import is_projected
from redkey.services import repeats
from redkey.services.answers import KeptAnswer
from redkey.services.caller import Pending, authority_ended
from redkey.services.costs import cost_of_bytes
from redkey.services.outcome import Outcome
from redkey.shapes.operation import Operation
from redkey.shapes.problem import Accepted

Headers = list[tuple[bytes, bytes]]
Work = Coroutine[Any, Any, None]

_log = structlog.get_logger("redkey.api")
_NO_ACTOR = Actor("", "", frozenset())
_CLOSE = (b"connection", b"close")
_UNUSUAL = frozenset({File, KeptAnswer, Raw})
_JSON = header_lines([(b"content-type", b"application/json"), *SECURITY])
_PROBLEM = header_lines([(b"content-type", problems.MEDIA_TYPE.encode()), *SECURITY])


class Api:
    """The HTTP application."""

    def __init__(
        self, routes: Iterable[Route], services: Services, authenticator: Authenticator, metrics: Metrics
    ) -> None:
        self.routes = tuple(routes)
        # Open requests, including streams.
        self.open = 0
        self._services, self._authenticator = services, authenticator
        self._access_log = services.config.access_log
        self._table = Table((route, Endpoint(route, services, metrics)) for route in self.routes)
        # Requests that match no endpoint are counted together.
        unmatched = Route(Operation("unknown", "ANY", "unknown"), _no_handler)
        self._unmatched = Endpoint(unmatched, services, metrics)

    def __call__(self, exchange: Exchange) -> Work | None:
        """Answer a request: at once, when its command is durable, or in the returned coroutine."""
        self.open += 1
        call = Call(self._services, exchange, self._unmatched, time.perf_counter())
        try:
            endpoint = self._admit(call)
            if endpoint.body is None:
                call.query = endpoint.query.read(exchange.query)
                return self._finish(call, endpoint.handler(call, None))
            # Almost every body has already arrived in full.
            data = exchange.take_whole(endpoint.body_limit)
            if data is None:
                return self._wait(call, self._receive(call))
            return self._finish(call, self._handle(call, data))
        except Exception as error:
            self._refuse(call, error)
            return None

    def _admit(self, call: Call) -> Endpoint:
        """Find the endpoint, and check the key and its scope."""
        exchange = call.exchange
        match = self._table.find(exchange.path)
        if match is None:
            raise Declined(404, "path_not_found", f"There is nothing at {exchange.path[:200]}.")
        methods, segments = match
        endpoint, names = methods.get(exchange.method) or _head_of(exchange.method, methods)
        call.endpoint, path = endpoint, {}
        for name, index in names:
            path[name] = segments[index]
        call.path = path
        if endpoint.is_open or (endpoint.operation.shared and b"authorization" not in exchange.headers):
            call.actor, call.topic = _NO_ACTOR, ""
            return endpoint
        connection = exchange.connection
        principal, call.rate_headers = self._authenticator.admit(
            exchange.headers, connection.address, reads=endpoint.reads
        )
        if connection.is_stranger:
            connection.authenticated()
        call.authenticated(principal)
        endpoint.judge(call)
        return endpoint

    def _handle(self, call: Call, data: bytes) -> Any:
        endpoint, exchange = call.endpoint, call.exchange
        if data:
            check_media(exchange.headers)
        call.query = endpoint.query.read(exchange.query)
        call.body_bytes = len(data)
        if call.is_large:
            return self._handle_large(call, data)
        return self._run(call, data, endpoint.body.read(data, endpoint.body_limit))  # type: ignore[union-attr]

    async def _handle_large(self, call: Call, data: bytes) -> Any:
        """Parse a large body in a thread, so that the event loop stays free for other requests."""
        call.charge(cost_of_bytes(len(data)))
        endpoint = call.endpoint
        read = partial(endpoint.body.read, data, endpoint.body_limit)  # type: ignore[union-attr]
        result = self._run(call, data, await call.beside(read))
        return await result if iscoroutine(result) else result

    def _run(self, call: Call, data: bytes, body: Any) -> Any:
        endpoint, exchange = call.endpoint, call.exchange
        operation = endpoint.operation
        key = idempotency_key(exchange.headers, body) if endpoint.takes_key else ""
        if key:
            call.identify(operation, key, b"%b?%b" % (exchange.path.encode(), exchange.query), data)
        if extensions := getattr(body, "extensions", None):
            call.extensions = call.extended(extensions)
        if key and operation.repeats != "records":
            return repeats.answer_once(call, partial(endpoint.handler, call, body), partial(render, call))
        return endpoint.handler(call, body)

    async def _receive(self, call: Call) -> Any:
        """Handle a request whose body has not arrived in full."""
        exchange, limit = call.exchange, call.endpoint.body_limit
        if cost_of_bytes(declared_size(exchange.headers, limit) or 0):
            # Refuse before receiving: otherwise a sender could slow others down with many large bodies.
            call.services.costs.check(call.actor.key_id, call.topic)
        result = self._handle(call, await read_body(exchange, limit))
        return await result if iscoroutine(result) else result

    # The reply.

    def _finish(self, call: Call, result: Any) -> Work | None:
        if type(result) is Pending:
            self._submit(call, result)
            return None
        if iscoroutine(result):
            if getattr(call.query, "wait", 0):
                result = call.while_authorised(result)
            return self._wait(call, result)
        self._reply(call, result)
        return None

    def _submit(self, call: Call, pending: Pending[Any]) -> None:
        exchange = call.exchange
        exchange.is_answered_later = True
        release: Callable[[], None] | None = None

        def done(outcome: Outcome | RedKeyError) -> None:
            if call.over:
                # Answered already: the caller did not want to wait.
                return
            exchange.on_lost = None
            if release is not None:
                release()
            try:
                if not isinstance(outcome, Outcome):
                    raise outcome
                reply = call.take(outcome, pending.part).reply
                if call.is_unrecorded and repeats.must_keep(call, reply):
                    self._keep_then_reply(call, reply)
                else:
                    self._reply(call, reply)
            except Exception as error:
                self._refuse(call, error)

        if call.reads_take_long:
            # A refusal may look into the store for what the request was answered before.
            answer, done = done, lambda outcome: fibers.start(answer, outcome)
        waits = not (is_projected(pending.topic or call.topic) and _prefers_no_wait(exchange))
        if not waits:
            # The caller would not learn of a task that comes later.
            pending = msgspec.structs.replace(pending, wait_seconds=0)
        submission = call.enqueue(pending, done)
        if not waits:
            submission.when_ordered(partial(self._accept, call))
        if pending.wait_seconds:
            # Leave the wait when the caller disconnects: it would never learn of a task that it won.
            def leave() -> None:
                submission.leave(done)
                self._end(call)
                if release is not None:
                    release()

            def end() -> None:
                submission.leave(done)
                done(authority_ended())

            def hold() -> None:
                # Until now the unit has checked the key; from here on it may be revoked while the request waits.
                nonlocal release
                try:
                    release = call.services.authority.hold(call.principal, end)
                except Exception as error:
                    submission.leave(done)
                    exchange.on_lost = None
                    self._refuse(call, error)

            exchange.on_lost = leave
            submission.when_waiting(partial(fibers.start, hold) if call.reads_take_long else hold)
            exchange.connection.take_more()

    def _accept(self, call: Call, event_id: str) -> None:
        """Tell a caller that does not wait that its request has its place in the order; the rest is not known yet."""
        if call.over:
            return
        body = encode(Accepted(status="accepted", event_id=event_id))
        self._reply(call, Raw(body, status=202, headers=((b"preference-applied", b"respond-async"),)))

    async def _wait(self, call: Call, work: Awaitable[Any]) -> None:
        exchange = call.exchange
        try:
            reply = await work
            if type(reply) is Pending:
                reply = await call.settled(reply)
            if isinstance(reply, Stream):
                status = await reply.run(exchange.receive, exchange.send)
                self._count(call, status)
            else:
                self._reply(call, await repeats.kept(call, reply, partial(render, call)))
        except ConnectionResetError:
            self._end(call)
        except Exception as error:
            self._refuse(call, error)

    def _keep_then_reply(self, call: Call, reply: Any) -> None:
        """Store the reply before sending it, because it could not be computed again for a repeated request."""

        def done(stored: KeptAnswer | RedKeyError) -> None:
            if isinstance(stored, KeptAnswer):
                self._reply(call, stored)
            else:
                self._refuse(call, stored)

        repeats.keep(call, reply, partial(render, call), done)

    def _reply(self, call: Call, reply: Any) -> None:
        if type(reply) in _UNUSUAL:
            self._reply_otherwise(call, reply)
            return
        status, head, body = call.endpoint.status, _JSON, encode(reply)
        if call.rate_headers:
            head += header_lines(call.rate_headers)
        self._count(call, status)
        call.exchange.reply(status, head, body)

    def _reply_otherwise(self, call: Call, reply: File | KeptAnswer | Raw) -> None:
        """Send a reply that is not the operation's struct."""
        if isinstance(reply, File):
            self._count(call, reply.send(call.exchange))
            return
        if isinstance(reply, KeptAnswer):
            reply = Raw(reply.reply, reply.media, reply.status)
        head = header_lines([(b"content-type", reply.media.encode()), *_security_of(reply), *call.rate_headers])
        self._count(call, reply.status)
        call.exchange.reply(reply.status, head, reply.body)

    def _refuse(self, call: Call, error: Exception) -> None:
        """Answer an error with its problem, or a repeated request with its first answer."""
        exchange = call.exchange
        try:
            before = repeats.answer_before(call, error)
        except RedKeyError as refused:
            before, error = None, refused
        if before is not None:
            self._reply(call, before)
            return
        if isinstance(error, Refused) and error.code == KEY_REUSED:
            error = call.explain_reuse(error, call.path.values())
        answer = problems.answer(error)
        if answer.status >= 500:
            # A store that cannot be reached fails every request: where each was then tells nothing more.
            where = None if isinstance(error, StoreError) else error
            told = str(error) if where is None else ""
            _log.error("request failed", path=exchange.path, status=answer.status, reason=told, exc_info=where)
        if _CLOSE in answer.headers:
            exchange.keep_alive = False
        further = [header for header in (*answer.headers, *call.rate_headers) if header != _CLOSE]
        self._count(call, answer.status)
        exchange.reply(answer.status, _PROBLEM + header_lines(further), answer.body)

    def _end(self, call: Call) -> None:
        """The caller disconnected."""
        if not call.over:
            call.over = True
            self.open -= 1

    def _count(self, call: Call, status: int) -> None:
        """Count an answered request once, even if its answer could not be written and was replaced by a problem."""
        if call.over:
            return
        call.over = True
        self.open -= 1
        seconds = time.perf_counter() - call.started
        call.endpoint.observe(status, seconds)
        if self._access_log:
            exchange = call.exchange
            _log.info("request", method=exchange.method, path=exchange.path, status=status, seconds=round(seconds, 6))


def _head_of(method: str, methods: Methods) -> tuple[Endpoint, tuple[tuple[str, int], ...]]:
    """The endpoint that answers HEAD, which is that of GET; Declined for a method that the path does not have."""
    get_endpoint = methods.get("GET") if method == "HEAD" else None
    if get_endpoint is None or get_endpoint[0].operation.streamed:
        allow = ", ".join(sorted(methods))
        detail = f"{method[:16]} is not a method of this path."
        raise Declined(405, "method_not_allowed", detail, headers={"allow": allow})
    return get_endpoint


def _prefers_no_wait(exchange: Exchange) -> bool:
    """True when the caller does not want to wait until its request is ordered and folded (RFC 7240)."""
    return b"respond-async" in exchange.headers.get(b"prefer", b"")


async def _no_handler(call: Call) -> None:
    """The handler of requests that match no endpoint; it is never called."""


def _security_of(reply: Raw) -> Headers:
    """The reply's own headers, and the security headers that it does not set itself."""
    own = {name for name, _ in reply.headers}
    return [*reply.headers, *(header for header in SECURITY if header[0] not in own)]
