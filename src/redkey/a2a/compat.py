"""Clients of A2A 0.3, by the official SDK's translation to 1.0 (extra `redkey[a2a]`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from redkey.a2a.gateway import Call, Gateway
from redkey.http.asgi import Mount
from redkey.http.exchange import Exchange

_STATE = "redkey_call"


class OlderVersion:
    """Answers requests of version 0.3; it is built with the first of them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._mount: Mount | None = None

    async def __call__(self, exchange: Exchange, call: Call, body: dict[str, Any]) -> None:
        """Answer a JSON-RPC request whose body was read; ImportError without the extra."""
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
        """The caller was admitted before: it comes with the request."""

        def build(self, request: Request) -> ServerCallContext:
            state = {CALL: request.scope["state"][_STATE], "headers": dict(request.headers)}
            return ServerCallContext(state=state)

    routes = create_jsonrpc_routes(LedgerHandler(gateway), "/", context_builder=Builder(), enable_v0_3_compat=True)
    return Starlette(routes=routes)
