"""The JSON-RPC 2.0 binding of A2A: one address, the method in the body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from redkey.a2a import face, requests
from redkey.a2a.bindings import Binding
from redkey.a2a.call import Call
from redkey.a2a.errors import A2aError, invalid, refused, translated
from redkey.a2a.face import Face
from redkey.a2a.gateway import Gateway
from redkey.http.exchange import Exchange

_JSON = "application/json"
# Answers a request of version 0.3: (exchange, call, request).
Older = Callable[[Exchange, Call, dict[str, Any]], Awaitable[None]]


class RpcFace:
    """The JSON-RPC binding."""

    def __init__(self, face: Face, gateway: Gateway, bindings: tuple[Binding, ...], older: Older | None) -> None:
        self._face, self._gateway, self._older = face, gateway, older
        self._bindings = {binding.name: binding for binding in bindings}

    def __call__(self, exchange: Exchange, tenant: str) -> Coroutine[Any, Any, None] | None:
        """Answer a request: from a callback when its command is durable (return None), or in the returned coroutine."""
        try:
            begun = self._face.begin(exchange, tenant)
        except Exception as error:
            self._fail(exchange, error, None)
            return None
        if begun is None:
            return self._receive(exchange, tenant)
        call, body = begun
        try:
            if self._send_at_once(exchange, call, body):
                return None
        except Exception as error:
            self._fail(exchange, error, _id_of(body))
            return None
        return self._guarded(exchange, call, body)

    def _send_at_once(self, exchange: Exchange, call: Call, body: Any) -> bool:
        if (
            not isinstance(body, dict)
            or body.get("method") != "SendMessage"
            or not isinstance(body.get("params"), dict)
        ):
            return False
        request_id = _id_of(body)
        _method_of(body)
        face.check_version(face.version_of(exchange.headers, exchange.query))
        pending = self._gateway.send_at_once(call, face.converted(body["params"], requests.SendMessage))
        if pending is None:
            return False

        def answer(result: Any) -> None:
            headers = face.extension_headers(call)
            face.reply(exchange, 200, {"jsonrpc": "2.0", "id": request_id, "result": result}, _JSON, headers)

        self._face.send(exchange, call, pending, answer, lambda error: self._fail(exchange, error, request_id))
        return True

    async def _receive(self, exchange: Exchange, tenant: str) -> None:
        try:
            call = self._face.call(exchange, tenant)
            body = await self._face.body(exchange, call.caller)
        except ConnectionResetError:
            return
        except Exception as error:
            self._fail(exchange, error, None)
            return
        await self._guarded(exchange, call, body)

    async def _guarded(self, exchange: Exchange, call: Call, body: Any) -> None:
        request_id = _id_of(body)
        try:
            await self._answer(exchange, call, body, request_id)
        except ConnectionResetError:
            return
        except Exception as error:
            self._fail(exchange, error, request_id)

    def _fail(self, exchange: Exchange, error: Exception, request_id: Any) -> None:
        failure = translated(error)
        face.report(exchange, error, failure)
        # Authentication errors and overload are reported by the HTTP status too.
        status = failure.kind.http if failure.is_transport else 200
        headers = list(failure.headers) if failure.is_transport else []
        face.reply(exchange, status, _failed(request_id, failure), _JSON, headers)

    async def _answer(self, exchange: Exchange, call: Call, body: Any, request_id: Any) -> None:
        name = _method_of(body)
        version = face.version_of(exchange.headers, exchange.query)
        if self._older is not None and "/" in name and face.is_older(version):
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
    """Return the id of a request; None if it has no valid one."""
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
