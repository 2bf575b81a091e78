"""The adapter: from a request to a handler and back.

It owns the order of the checks (path, method, key, scope, rate, body, query), so that a caller learns nothing before
the checks that come first, and it turns every error into a problem. A handler is a plain function or a coroutine.
A plain function returns its reply, or a `Pending` one: then no task is made for the request, and its reply is
written as soon as the unit that holds its command is durable.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from inspect import iscoroutine
from typing import Any

import structlog

from redkey.api.auth import Authenticator
from redkey.api.call import Call, Raw, Services
from redkey.api.endpoint import Endpoint, Stream, encode, idempotency_key, render
from redkey.api.metrics import Metrics
from redkey.commands.actor import Actor
from redkey.commands.decision import KEY_REUSED, Refused
from redkey.errors import RedKeyError
from redkey.http import problems
from redkey.http.exchange import Exchange, header_lines
from redkey.http.files import File
from redkey.http.problems import Declined
from redkey.http.request import check_media, declared_size, read_body
from redkey.http.route import Methods, Route, Table
from redkey.http.security import SECURITY
from redkey.services import repeats
from redkey.services.answers import KeptAnswer
from redkey.services.caller import Pending, authority_ended
from redkey.services.costs import cost_of_bytes
from redkey.services.outcome import Outcome
from redkey.services.use_case import InsufficientScope
from redkey.shapes.operation import Operation

Headers = list[tuple[bytes, bytes]]
Work = Coroutine[Any, Any, None]

_log = structlog.get_logger("redkey.api")
_NOBODY = Actor("", "", frozenset())
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
        # Requests that are being answered, streams included.
        self.open = 0
        self._services, self._authenticator = services, authenticator
        self._access_log = services.config.access_log
        self._table = Table((route, Endpoint(route, services, metrics)) for route in self.routes)
        # Problems of requests that reach no endpoint are counted together.
        nowhere = Route(Operation("unknown", "ANY", "unknown"), _no_handler)
        self._nowhere = Endpoint(nowhere, services, metrics)

    def __call__(self, exchange: Exchange) -> Work | None:
        """Answer a request: at once, when its command is durable, or in the coroutine that is returned."""
        self.open += 1
        call = Call(self._services, exchange, self._nowhere, time.perf_counter())
        try:
            endpoint = self._admit(call)
            if endpoint.body is None:
                call.query = endpoint.query.read(exchange.query)
                return self._finish(call, endpoint.handler(call, None))
            # Almost every body has been received whole.
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
        found = self._table.find(exchange.path)
        if found is None:
            raise Declined(404, "path_not_found", f"There is nothing at {exchange.path[:200]}.")
        methods, segments = found
        endpoint, names = methods.get(exchange.method) or _head_of(exchange.method, methods)
        call.endpoint, path = endpoint, {}
        for name, index in names:
            path[name] = segments[index]
        call.path = path
        if endpoint.is_open or (endpoint.operation.shared and b"authorization" not in exchange.headers):
            call.actor, call.topic = _NOBODY, ""
            return endpoint
        connection = exchange.connection
        principal, call.told = self._authenticator.admit(exchange.headers, connection.address, looks=endpoint.looks)
        if connection.is_stranger:
            connection.authenticated()
        call.authenticated(principal)
        if endpoint.scopes.isdisjoint(principal.actor.scopes):
            raise InsufficientScope(endpoint.operation.scopes)
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
        """Read a large body beside the event loop, where it holds up nobody else."""
        call.charge(cost_of_bytes(len(data)))
        endpoint = call.endpoint
        read = partial(endpoint.body.read, data, endpoint.body_limit)  # type: ignore[union-attr]
        result = self._run(call, data, await call.beside(read))
        return await result if iscoroutine(result) else result

    def _run(self, call: Call, data: bytes, body: Any) -> Any:
        endpoint, exchange = call.endpoint, call.exchange
        if endpoint.takes_key:
            key = idempotency_key(exchange.headers, body)
            if key:
                operation = endpoint.operation
                call.identify(operation, key, b"%b?%b" % (exchange.path.encode(), exchange.query), data)
                if operation.repeats != "records":
                    return repeats.answer_once(call, partial(endpoint.handler, call, body), partial(render, call))
        return endpoint.handler(call, body)

    async def _receive(self, call: Call) -> Any:
        """Handle a request whose body has not been received whole yet."""
        exchange, limit = call.exchange, call.endpoint.body_limit
        if cost_of_bytes(declared_size(exchange.headers, limit) or 0):
            # Receiving a large body to refuse it would hold up others as often as its sender tries.
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
        release: Callable[[], None] | None = None

        def done(outcome: Outcome | RedKeyError) -> None:
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

        submission = call.enqueue(pending, done)
        if pending.wait_seconds:
            # Give the wait up when the caller disconnects: it would never learn of what it won.
            def leave() -> None:
                submission.leave(done)
                self._end(call)
                if release is not None:
                    release()

            def end() -> None:
                submission.leave(done)
                done(authority_ended())

            def hold() -> None:
                # Until now the unit has checked the key.
                nonlocal release
                try:
                    release = call.services.authority.hold(call.principal, end)
                except Exception as error:
                    submission.leave(done)
                    exchange.on_lost = None
                    self._refuse(call, error)

            exchange.on_lost = leave
            submission.when_waiting(hold)
            exchange.connection.take_more()

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
        """Reply once the reply is kept: a repeated request could not be told it again."""

        def done(kept: KeptAnswer | RedKeyError) -> None:
            if isinstance(kept, KeptAnswer):
                self._reply(call, kept)
            else:
                self._refuse(call, kept)

        repeats.keep(call, reply, partial(render, call), done)

    def _reply(self, call: Call, reply: Any) -> None:
        if type(reply) in _UNUSUAL:
            self._reply_otherwise(call, reply)
            return
        status, head, body = call.endpoint.status, _JSON, encode(reply)
        if call.told:
            head += header_lines(call.told)
        self._count(call, status)
        call.exchange.reply(status, head, body)

    def _reply_otherwise(self, call: Call, reply: File | KeptAnswer | Raw) -> None:
        """Reply with something else than the struct of the operation."""
        if isinstance(reply, File):
            self._count(call, reply.send(call.exchange))
            return
        if isinstance(reply, KeptAnswer):
            reply = Raw(reply.reply, reply.media, reply.status)
        head = header_lines([(b"content-type", reply.media.encode()), *_security_of(reply), *call.told])
        self._count(call, reply.status)
        call.exchange.reply(reply.status, head, reply.body)

    def _refuse(self, call: Call, error: Exception) -> None:
        """Answer an error with its problem; a request that was answered before, with that answer."""
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
            _log.error("request failed", path=exchange.path, status=answer.status, exc_info=error)
        if _CLOSE in answer.headers:
            exchange.keep_alive = False
        further = [header for header in (*answer.headers, *call.told) if header != _CLOSE]
        self._count(call, answer.status)
        exchange.reply(answer.status, _PROBLEM + header_lines(further), answer.body)

    def _end(self, call: Call) -> None:
        """The caller has gone."""
        if not call.over:
            call.over = True
            self.open -= 1

    def _count(self, call: Call, status: int) -> None:
        """Count a request that is answered now; not again when its answer could not be written and is a problem."""
        if call.over:
            return
        call.over = True
        self.open -= 1
        seconds = time.perf_counter() - call.begun
        call.endpoint.observe(status, seconds)
        if self._access_log:
            exchange = call.exchange
            _log.info("request", method=exchange.method, path=exchange.path, status=status, seconds=round(seconds, 6))


def _head_of(method: str, methods: Methods) -> tuple[Endpoint, tuple[tuple[str, int], ...]]:
    """The endpoint that answers HEAD, which is that of GET; Declined for a method that the path does not have."""
    found = methods.get("GET") if method == "HEAD" else None
    if found is None or found[0].operation.streamed:
        allow = ", ".join(sorted(methods))
        detail = f"{method[:16]} is not a method of this path."
        raise Declined(405, "method_not_allowed", detail, headers={"allow": allow})
    return found


async def _no_handler(call: Call) -> None:
    """Requests that reach no endpoint have no handler."""


def _security_of(reply: Raw) -> Headers:
    """A page that a browser shows brings its own policy."""
    own = {name for name, _ in reply.headers}
    return [*reply.headers, *(header for header in SECURITY if header[0] not in own)]
