"""The server itself: is it alive, can it serve, what does it count, what can it do.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from typing import Any

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, get, without_key
from redkey.shapes.server import FoundIds, Health, Readiness


class Server(Resource[Mode]):
    """The server itself: is it alive, can it serve, what does it count, what can it do."""

    @Operation
    def health(self) -> Request[Health]:
        """The process is alive."""
        return without_key(get("/healthz", Health))

    @Operation
    def ready(self) -> Request[Readiness]:
        """The server can serve."""
        return without_key(get("/readyz", Readiness))

    @Operation
    def openapi(self) -> Request[dict[str, Any]]:
        """This API as OpenAPI 3.1."""
        return without_key(get("/openapi.json", dict[str, Any]))

    @Operation
    def docs(self) -> Request[str]:
        """The documentation as a page."""
        return without_key(get("/docs", str, accept="text/html"))

    @Operation
    def find_ids(self, prefix: str) -> Request[FoundIds]:
        """Ids of tasks, runs, gates and agents that begin with a prefix: people need not type whole ones."""
        return get(at("ids", prefix), FoundIds)
