"""A2A inside `redkey serve`: `/a2a` for both HTTP bindings, and a gRPC port if one is configured."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import structlog

from redkey.a2a.bindings import bindings
from redkey.a2a.card import PATH as CARD_PATH
from redkey.a2a.card import Cards
from redkey.a2a.compat import OlderRpc, serves_older
from redkey.a2a.face import Face, is_older, version_of
from redkey.a2a.gateway import Gateway
from redkey.a2a.rest import RestFace
from redkey.a2a.rpc import RpcFace
from redkey.api.auth import Authenticator
from redkey.http.exchange import Exchange
from redkey.services.means import Means

if TYPE_CHECKING:
    from redkey.a2a.grpc_face import GrpcFace

PREFIX = "/a2a"
_log = structlog.get_logger("redkey.a2a")


class A2aDoor:
    """All transports of A2A over one gateway."""

    def __init__(self, means: Means, authenticator: Authenticator, workspace_id: str) -> None:
        self._settings, self._host = means.config.a2a, means.config.host
        self._body_bytes = means.config.limits.body_bytes
        self._face = Face(means, authenticator)
        self._cards = Cards(means, workspace_id)
        self._gateway = Gateway(self._settings.queue, self._cards.extended)
        operations = bindings(self._gateway)
        self._rpc = RpcFace(self._face, self._gateway, operations, OlderRpc(self._gateway) if serves_older() else None)
        self._rest = RestFace(self._face, self._gateway, operations)
        self._grpc: GrpcFace | None = None
        # The address of the gRPC port; empty if there is none.
        self.grpc_address = ""

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Answer a request: `/a2a` and `/a2a/QUEUE` are JSON-RPC, the paths below them are HTTP+JSON."""
        if exchange.path == CARD_PATH and exchange.method in ("GET", "HEAD"):
            self._cards.answer(exchange)
            return None
        path = exchange.path.removeprefix(PREFIX).rstrip("/")
        tenant, _, rest = path.removeprefix("/").partition("/")
        # The first part is a queue unless the path is an operation's; no id of a queue has a colon.
        if self._rest.knows(path) or ":" in tenant:
            tenant, rest = "", path.removeprefix("/")
        if exchange.method == "POST" and not rest:
            return self._rpc(exchange, tenant)
        if path.startswith("/v1/") and serves_older() and is_older(version_of(exchange.headers, exchange.query)):
            return self._rest.answer_older(exchange, path)
        return self._rest(exchange, f"/{rest}", tenant)

    async def start(self) -> None:
        """Listen for gRPC if a port is configured."""
        if self._settings.grpc_port is None:
            return
        # Importing gRPC and the SDK takes a third of a second.
        from redkey.a2a.grpc_face import GrpcFace

        host = f"[{self._host}]" if ":" in self._host else self._host
        self._grpc = GrpcFace(self._face, self._gateway, f"{host}:{self._settings.grpc_port}", self._body_bytes)
        self.grpc_address = self._cards.grpc_url = f"{host}:{await self._grpc.start()}"
        _log.info("serving A2A by gRPC", address=self.grpc_address)

    async def stop(self) -> None:
        """Stop listening."""
        if self._grpc is not None:
            await self._grpc.stop()
