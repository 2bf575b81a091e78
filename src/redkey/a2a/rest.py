"""A2A by HTTP+JSON: an address for each operation."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from urllib.parse import parse_qsl

from redkey.a2a import face, requests
from redkey.a2a.bindings import Binding
from redkey.a2a.errors import A2aError, refused, translated
from redkey.a2a.face import Face
from redkey.a2a.gateway import Call, Gateway
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined

_MEDIA = "application/a2a+json"


class RestFace:
    """The HTTP+JSON binding."""

    def __init__(self, face: Face, gateway: Gateway, bindings: tuple[Binding, ...]) -> None:
        self._face, self._gateway, self._bindings = face, gateway, bindings

    def knows(self, path: str) -> bool:
        """True when there is an operation at a path."""
        return any(binding.path.fullmatch(path) for binding in self._bindings)

    def __call__(self, exchange: Exchange, path: str, tenant: str) -> Coroutine[Any, Any, None] | None:
        """Answer a request for the operation at a path: at once, or in the coroutine that is returned."""
        begun = None
        if (exchange.method, path) == ("POST", "/message:send"):
            try:
                begun = self._face.begin(exchange, tenant)
                if begun is not None and self._send_at_once(exchange, *begun):
                    return None
            except Exception as error:
                self._fail(exchange, error)
                return None
        return self._guarded(exchange, path, tenant, begun)

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

    async def _guarded(self, exchange: Exchange, path: str, tenant: str, begun: tuple[Call, Any] | None) -> None:
        try:
            await self._answer(exchange, path, tenant, begun)
        except ConnectionResetError:
            return
        except Exception as error:
            self._fail(exchange, error)

    def _fail(self, exchange: Exchange, error: Exception) -> None:
        failure = translated(error)
        face.report(exchange, error, failure)
        face.reply(exchange, failure.kind.http, failure.as_rest(), "application/json", list(failure.headers))

    async def _answer(self, exchange: Exchange, path: str, tenant: str, begun: tuple[Call, Any] | None) -> None:
        call = begun[0] if begun is not None else self._face.call(exchange, tenant)
        here = [binding for binding in self._bindings if binding.path.fullmatch(path)]
        if not here:
            raise refused("MethodNotFoundError", f"There is no operation at {path[:100]}.")
        binding = next((one for one in here if one.method == exchange.method), None)
        if binding is None:
            allow = ", ".join(sorted(one.method for one in here))
            text = f"{exchange.method[:16]} is not a method of this path."
            raise Declined(405, "method_not_allowed", text, headers={"allow": allow})
        face.check_version(face.version_of(exchange.headers, exchange.query))
        found = binding.path.fullmatch(path)
        named = found.groupdict() if found is not None else {}
        request = face.converted(await self._given(exchange, call, named, begun), binding.kind)
        headers = face.extension_headers(call)
        if binding.streams:
            quiet = self._face.means.config.limits.cursor_seconds
            await face.stream(exchange, binding.run(call, request), dict, A2aError.as_rest, headers, quiet)
        else:
            result = await exchange.while_connected(binding.run(call, request))
            face.reply(exchange, 200, result, _MEDIA, headers)

    async def _given(
        self, exchange: Exchange, call: Call, named: dict[str, str], begun: tuple[Call, Any] | None
    ) -> dict[str, Any]:
        """The fields of a request: of its body or its query, and of its path, which come first."""
        given: Any = {}
        if exchange.method == "POST":
            if begun is not None:
                given = begun[1]
            else:
                given = await self._face.body(exchange, call.caller, optional=":" in exchange.path)
            if not isinstance(given, dict):
                raise refused("InvalidRequestError", "The body of a request is an object.")
        else:
            pairs = parse_qsl(exchange.query.decode("latin-1"), keep_blank_values=True, max_num_fields=64)
            given = {name: value for name, value in pairs if name != "A2A-Version"}
        return {**given, **named}
