"""Support for clients of A2A 0.3: the official SDK translates them to 1.0 (extra `redkey[a2a]`)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import msgspec

from redkey.a2a.call import Call, Event
from redkey.a2a.errors import A2aError, refused, translated
from redkey.a2a.gateway import Gateway
from redkey.http.asgi import Mount
from redkey.http.exchange import Exchange

_STATE = "redkey_call"


@cache
def serves_older() -> bool:
    """Return whether the packages for clients of 0.3 are installed."""
    return (
        find_spec("a2a") is not None and find_spec("starlette") is not None and find_spec("sse_starlette") is not None
    )


class OlderRpc:
    """Answers JSON-RPC requests of version 0.3; the SDK is imported at the first one."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._mount: Mount | None = None

    async def __call__(self, exchange: Exchange, call: Call, body: dict[str, Any]) -> None:
        """Answer a request whose body was read."""
        if self._mount is None:
            self._mount = Mount(_application(self._gateway), "")
        await self._mount.answer(exchange, path="/", body=msgspec.json.encode(body), state={_STATE: call})


def _application(gateway: Gateway) -> Callable[..., Any]:
    from a2a.server.context import ServerCallContext
    from a2a.server.routes import create_jsonrpc_routes
    from a2a.server.routes.common import ServerCallContextBuilder
    from starlette.applications import Starlette
    from starlette.requests import Request

    from redkey.a2a.handler import CALL, LedgerHandler

    class Builder(ServerCallContextBuilder):
        """Takes the caller from the request's state: it was authenticated before."""

        def build(self, request: Request) -> ServerCallContext:
            state = {CALL: request.scope["state"][_STATE], "headers": dict(request.headers)}
            return ServerCallContext(state=state)

    routes = create_jsonrpc_routes(LedgerHandler(gateway), "/", context_builder=Builder(), enable_v0_3_compat=True)
    return Starlette(routes=routes)


class OlderRoute(msgspec.Struct, frozen=True):
    """One operation of HTTP+JSON 0.3: `name` is the method of the SDK's handler."""

    method: str
    path: re.Pattern[str]
    name: str
    streams: bool = False


_TASK = r"/v1/tasks/(?P<id>[^/:]+)"
_CONFIGS = _TASK + "/pushNotificationConfigs"
OLDER_ROUTES = tuple(
    OlderRoute(method, re.compile(path), name, name in ("on_message_send_stream", "on_subscribe_to_task"))
    for method, path, name in (
        ("POST", "/v1/message:send", "on_message_send"),
        ("POST", "/v1/message:stream", "on_message_send_stream"),
        ("GET", _TASK, "on_get_task"),
        ("POST", _TASK + ":cancel", "on_cancel_task"),
        ("POST", _TASK + ":subscribe", "on_subscribe_to_task"),
        ("GET", _TASK + ":subscribe", "on_subscribe_to_task"),
        ("POST", _CONFIGS, "set_push_notification"),
        ("GET", _CONFIGS, "list_push_notifications"),
        ("GET", _CONFIGS + "/(?P<push_id>[^/]+)", "get_push_notification"),
        ("GET", "/v1/card", "on_get_extended_agent_card"),
    )
)


class OlderRest:
    """Runs HTTP+JSON requests of version 0.3 and raises the gateway's errors."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._handler: Any = None

    async def run(
        self, exchange: Exchange, call: Call, route: OlderRoute, named: Mapping[str, str], body: bytes
    ) -> Any:
        """Return the reply to a request whose body was read."""
        try:
            return await getattr(self._built(), route.name)(*_request_and_context(exchange, call, named, body))
        except Exception as error:
            raise _failure(error) from error

    async def events(
        self, exchange: Exchange, call: Call, route: OlderRoute, named: Mapping[str, str], body: bytes
    ) -> AsyncIterator[Event]:
        """Yield the events of a stream. Streams of 0.3 have no event ids, so they cannot be resumed."""
        try:
            async for found in getattr(self._built(), route.name)(*_request_and_context(exchange, call, named, body)):
                yield Event("", found)
        except Exception as error:
            raise _failure(error) from error

    def _built(self) -> Any:
        if self._handler is None:
            from a2a.compat.v0_3.rest_handler import REST03Handler

            from redkey.a2a.handler import LedgerHandler

            self._handler = REST03Handler(LedgerHandler(self._gateway))
        return self._handler


def _request_and_context(exchange: Exchange, call: Call, named: Mapping[str, str], body: bytes) -> tuple[Any, Any]:
    """Build the request and the context that the SDK's handler expects."""
    from a2a.server.context import ServerCallContext
    from starlette.requests import Request

    from redkey.a2a.handler import CALL

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "method": exchange.method,
        "path": exchange.path,
        "query_string": exchange.query,
        "headers": list(exchange.headers.items()),
        "path_params": dict(named),
    }
    # The version was checked before; the SDK reads it from a header only.
    return Request(scope, receive), ServerCallContext(state={CALL: call, "headers": {"A2A-Version": "0.3"}})


def _failure(error: Exception) -> A2aError:
    """Translate an error of the SDK or of its parsers into an error of the gateway."""
    from a2a.utils.errors import A2AError
    from google.protobuf.json_format import ParseError

    if isinstance(error, A2AError):
        # LedgerHandler keeps the original error as the cause.
        if error.__cause__ is not None:
            return translated(error.__cause__)
        return refused(type(error).__name__, error.message)
    if isinstance(error, ParseError | ValueError):
        text = " ".join(str(error).split())[:300]
        return refused("InvalidParamsError", "The request is not one of A2A 0.3.", ("", text))
    return translated(error)
