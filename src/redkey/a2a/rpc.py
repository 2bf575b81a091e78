"""A2A by JSON-RPC 2.0: one address, the method in the body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from redkey.a2a import face
from redkey.a2a.bindings import Binding
from redkey.a2a.errors import A2aError, invalid, refused, translated
from redkey.a2a.face import Face
from redkey.a2a.gateway import Call
from redkey.http.exchange import Exchange

_JSON = "application/json"
# Hands a request of version 0.3 over: (exchange, call, request).
Older = Callable[[Exchange, Call, dict[str, Any]], Awaitable[None]]


class RpcFace:
    """The JSON-RPC binding."""

    def __init__(self, face: Face, bindings: tuple[Binding, ...], older: Older) -> None:
        self._face, self._older = face, older
        self._bindings = {binding.name: binding for binding in bindings}

    async def __call__(self, exchange: Exchange, tenant: str) -> None:
        """Answer a request."""
        request_id = None
        try:
            call = self._face.call(exchange, tenant)
            body = await self._face.body(exchange, call.caller)
            request_id = _id_of(body)
            await self._answer(exchange, call, body, request_id)
        except ConnectionResetError:
            return
        except Exception as error:
            failure = translated(error)
            face.report(exchange, error, failure)
            # Who may not call, and whom the server cannot answer now, learns it by the HTTP status too.
            status = failure.kind.http if failure.is_transport else 200
            headers = list(failure.headers) if failure.is_transport else []
            face.reply(exchange, status, _failed(request_id, failure), _JSON, headers)

    async def _answer(self, exchange: Exchange, call: Call, body: Any, request_id: Any) -> None:
        name = _method_of(body)
        version = face.version_of(exchange.headers, exchange.query)
        if "/" in name and version.startswith("0."):
            await self._older(exchange, call, body)
            return
        face.check_version(version)
        binding = self._bindings.get(name)
        if binding is None:
            raise refused("MethodNotFoundError", f"There is no method {name[:64]}.")
        params = body.get("params")
        if not isinstance(params, dict | None):
            raise invalid("The params of a request are an object.", "params", "not an object")
        request = face.converted(params or {}, binding.kind)
        headers = face.extension_headers(call)
        if binding.streams:

            def wrap(found: dict[str, Any]) -> dict[str, Any]:
                return {"jsonrpc": "2.0", "id": request_id, "result": found}

            def fail(failure: A2aError) -> dict[str, Any]:
                return _failed(request_id, failure)

            quiet = self._face.means.config.limits.cursor_seconds
            await face.stream(exchange, binding.run(call, request), wrap, fail, headers, quiet)
        else:
            result = await exchange.while_connected(binding.run(call, request))
            face.reply(exchange, 200, {"jsonrpc": "2.0", "id": request_id, "result": result}, _JSON, headers)


def _failed(request_id: Any, failure: A2aError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": failure.as_rpc()}


def _id_of(body: Any) -> Any:
    """The id of a request; null when it has none that JSON-RPC knows."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _method_of(body: Any) -> str:
    if isinstance(body, list):
        raise refused("InvalidRequestError", "Requests are taken one by one, not in batches.")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise refused("InvalidRequestError", 'A request is an object with "jsonrpc": "2.0".')
    found = body.get("id")
    if isinstance(found, bool) or not isinstance(found, str | int | None):
        raise refused("InvalidRequestError", "The id of a request is a string or a whole number.")
    name = body.get("method")
    if not isinstance(name, str) or not name:
        raise refused("InvalidRequestError", "A request names its method.")
    return name
