"""A2A by HTTP+JSON: an address for each operation."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from redkey.a2a import face
from redkey.a2a.bindings import Binding
from redkey.a2a.errors import A2aError, refused, translated
from redkey.a2a.face import Face
from redkey.a2a.gateway import Call
from redkey.http.exchange import Exchange
from redkey.http.problems import Declined

_MEDIA = "application/a2a+json"


class RestFace:
    """The HTTP+JSON binding."""

    def __init__(self, face: Face, bindings: tuple[Binding, ...]) -> None:
        self._face, self._bindings = face, bindings

    def knows(self, path: str) -> bool:
        """True when there is an operation at a path."""
        return any(binding.path.fullmatch(path) for binding in self._bindings)

    async def __call__(self, exchange: Exchange, path: str, tenant: str) -> None:
        """Answer a request for the operation at a path."""
        try:
            await self._answer(exchange, path, tenant)
        except ConnectionResetError:
            return
        except Exception as error:
            failure = translated(error)
            face.report(exchange, error, failure)
            face.reply(exchange, failure.kind.http, failure.as_rest(), "application/json", list(failure.headers))

    async def _answer(self, exchange: Exchange, path: str, tenant: str) -> None:
        call = self._face.call(exchange, tenant)
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
        request = face.converted(await self._given(exchange, call, named), binding.kind)
        headers = face.extension_headers(call)
        if binding.streams:
            quiet = self._face.means.config.limits.cursor_seconds
            await face.stream(exchange, binding.run(call, request), dict, A2aError.as_rest, headers, quiet)
        else:
            result = await exchange.while_connected(binding.run(call, request))
            face.reply(exchange, 200, result, _MEDIA, headers)

    async def _given(self, exchange: Exchange, call: Call, named: dict[str, str]) -> dict[str, Any]:
        """The fields of a request: of its body or its query, and of its path, which come first."""
        given: Any = {}
        if exchange.method == "POST":
            given = await self._face.body(exchange, call.caller, optional=":" in exchange.path)
            if not isinstance(given, dict):
                raise refused("InvalidRequestError", "The body of a request is an object.")
        else:
            pairs = parse_qsl(exchange.query.decode("latin-1"), keep_blank_values=True, max_num_fields=64)
            given = {name: value for name, value in pairs if name != "A2A-Version"}
        return {**given, **named}
