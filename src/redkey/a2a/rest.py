"""The HTTP+JSON binding of A2A: one path for each operation."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from redkey.a2a import face, requests
from redkey.a2a.bindings import Binding
from redkey.a2a.call import Call
from redkey.a2a.compat import OLDER_ROUTES, OlderRest, OlderRoute
from redkey.a2a.errors import A2aError, refused, translated
from redkey.a2a.face import Face
from redkey.a2a.gateway import Gateway
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined

_MEDIA = "application/a2a+json"
Shape = Callable[[A2aError], dict[str, Any]]
Routed = TypeVar("Routed", Binding, OlderRoute)


class RestFace:
    """The HTTP+JSON binding."""

    def __init__(self, face: Face, gateway: Gateway, bindings: tuple[Binding, ...]) -> None:
        self._face, self._gateway, self._bindings = face, gateway, bindings
        self._older = OlderRest(gateway)

    def knows(self, path: str) -> bool:
        """Return whether an operation has this path."""
        return any(binding.path.fullmatch(path) for binding in self._bindings)

    def __call__(self, exchange: Exchange, path: str, tenant: str) -> Coroutine[Any, Any, None] | None:
        """Answer a request: directly (return None), or in the returned coroutine."""
        begun = None
        if (exchange.method, path) == ("POST", "/message:send"):
            try:
                begun = self._face.begin(exchange, tenant)
                if begun is not None and self._send_at_once(exchange, *begun):
                    return None
            except Exception as error:
                self._fail(exchange, error)
                return None
        return self._guarded(exchange, self._answer(exchange, path, tenant, begun))

    def _send_at_once(self, exchange: Exchange, call: Call, body: Any) -> bool:
        face.check_version(face.version_of(exchange.headers, exchange.query))
        if not isinstance(body, dict):
            return False
        pending = self._gateway.send_at_once(call, face.converted(body, requests.SendMessage))
        if pending is None:
            return False

        def answer(result: Any) -> None:
            face.reply(exchange, 200, result, _MEDIA, face.extension_headers(call))

        self._face.send(exchange, call, pending, answer, lambda error: self._fail(exchange, error))
        return True

    def answer_older(self, exchange: Exchange, path: str) -> Coroutine[Any, Any, None]:
        """Answer a request of version 0.3, whose paths begin with `/v1`."""
        return self._guarded(exchange, self._answer_older(exchange, path), A2aError.as_older_rest)

    async def _guarded(
        self, exchange: Exchange, answering: Coroutine[Any, Any, None], shape: Shape = A2aError.as_rest
    ) -> None:
        try:
            await answering
        except ConnectionResetError:
            return
        except Exception as error:
            self._fail(exchange, error, shape)

    def _fail(self, exchange: Exchange, error: Exception, shape: Shape = A2aError.as_rest) -> None:
        failure = translated(error)
        face.report(exchange, error, failure)
        face.reply(exchange, failure.kind.http, shape(failure), _MEDIA, list(failure.headers))

    async def _answer(self, exchange: Exchange, path: str, tenant: str, begun: tuple[Call, Any] | None) -> None:
        call = begun[0] if begun is not None else self._face.call(exchange, tenant)
        binding, named = _route(self._bindings, exchange.method, path)
        face.check_version(face.version_of(exchange.headers, exchange.query))
        request = face.converted(await self._fields(exchange, call, named, begun), binding.kind)
        headers = face.extension_headers(call)
        if binding.streams:
            quiet = self._face.means.config.limits.cursor_seconds
            await face.stream(exchange, binding.run(call, request), dict, A2aError.as_rest, headers, quiet)
        else:
            result = await exchange.while_connected(binding.run(call, request))
            face.reply(exchange, 200, result, _MEDIA, headers)

    async def _answer_older(self, exchange: Exchange, path: str) -> None:
        call = self._face.call(exchange)
        route, named = _route(OLDER_ROUTES, exchange.method, path)
        body = b""
        if exchange.method == "POST" and (body := await self._face.received(exchange)):
            face.check_media(exchange)
        arguments = (exchange, call, route, named, body)
        if route.streams:
            quiet = self._face.means.config.limits.cursor_seconds
            await face.stream(exchange, self._older.events(*arguments), dict, A2aError.as_older_rest, [], quiet)
        else:
            result = await exchange.while_connected(self._older.run(*arguments))
            face.reply(exchange, 200, result, "application/json", [])

    async def _fields(
        self, exchange: Exchange, call: Call, named: dict[str, str], begun: tuple[Call, Any] | None
    ) -> dict[str, Any]:
        """Return the fields of a request from its body or query and from its path; the path takes precedence."""
        fields: Any = {}
        if exchange.method == "POST":
            if begun is not None:
                fields = begun[1]
            else:
                fields = await self._face.body(exchange, call.caller, optional=":" in exchange.path)
            if not isinstance(fields, dict):
                raise refused("InvalidRequestError", "The body of a request is an object.")
        else:
            pairs = parse_qsl(exchange.query.decode("latin-1"), keep_blank_values=True, max_num_fields=64)
            fields = {name: value for name, value in pairs if name != "A2A-Version"}
        return {**fields, **named}


def _route(routes: Sequence[Routed], method: str, path: str) -> tuple[Routed, dict[str, str]]:
    """Return the route of a request, and the parameters in its path."""
    here = [(route, found) for route in routes if (found := route.path.fullmatch(path)) is not None]
    if not here:
        raise refused("MethodNotFoundError", f"There is no operation at {path[:100]}.")
    for route, found in here:
        if route.method == method:
            return route, found.groupdict()
    allow = ", ".join(sorted(route.method for route, _ in here))
    raise Declined(405, "method_not_allowed", f"{method[:16]} is not a method of this path.", headers={"allow": allow})
