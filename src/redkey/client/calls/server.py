"""The server itself: liveness, readiness, metrics, and its API documents.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from typing import Any

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, at, get, without_key
from redkey.shapes.server import FoundIds, Health, Readiness


class Server(Resource[Mode]):
    """The server itself: liveness, readiness, metrics, and its API documents."""

    @Operation
    def health(self) -> Request[Health]:
        """The process is alive."""
        return without_key(get("/healthz", Health))

    @Operation
    def ready(self) -> Request[Readiness]:
        """The server can serve requests."""
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
        """Find ids of tasks, runs, gates, agents, messages, webhooks, live claims and events by a prefix; an event's
        has eight characters or more after `evt_`.
        """
        return get(at("ids", prefix), FoundIds)
