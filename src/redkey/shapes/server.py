"""The server itself: is it alive, can it serve, what does it count, what can it do."""

from __future__ import annotations

from typing import Annotated, Any

from redkey.shapes.fields import Reply, one_of
from redkey.shapes.operation import READ, Operation, answers


class Health(Reply, frozen=True, kw_only=True):
    """The server answers."""

    status: Annotated[str, one_of("ok")]


class Readiness(Reply, frozen=True, kw_only=True):
    """The server takes requests, and its store can be read and written."""

    # What keeps the records, with its version.
    store: str
    status: Annotated[str, one_of("ready")]


class FoundIds(Reply, frozen=True, kw_only=True):
    """The first ids that begin with a prefix, in their order."""

    items: tuple[str, ...]
    # False when there are more.
    complete: bool


HEALTHZ = Operation(
    "healthz",
    "GET",
    "/healthz",
    reply=Health,
    summary="The process is alive.",
    method_name="server.health",
)


@answers(HEALTHZ)
def healthz(caller: Any) -> Health:
    """The process is alive."""
    return Health(status="ok")


READYZ = Operation(
    "readyz",
    "GET",
    "/readyz",
    reply=Readiness,
    summary="The server can serve.",
    replies={503: "It is stopping, its store cannot be used or is full, or another process blocks all writers."},
    method_name="server.ready",
)
METRICS = Operation(
    "metrics",
    "GET",
    "/metrics",
    summary="Figures for Prometheus.",
    media=("text/plain",),
)
OPENAPI = Operation(
    "openapi",
    "GET",
    "/openapi.json",
    reply=dict[str, Any],
    summary="This API as OpenAPI 3.1.",
    description="The OpenAPI document.",
    method_name="server.openapi",
)
DOCS = Operation(
    "docs",
    "GET",
    "/docs",
    summary="This API as a page.",
    description="The documentation as a page.",
    media=("text/html",),
    method_name="server.docs",
)

FIND_IDS = Operation(
    "find_ids",
    "GET",
    "/ids/{prefix}",
    READ,
    reply=FoundIds,
    summary="Ids that begin with a prefix.",
    description="Ids of tasks, runs, gates and agents that begin with a prefix: people need not type whole ones.",
    method_name="server.find_ids",
)

OPERATIONS = (HEALTHZ, READYZ, METRICS, OPENAPI, DOCS, FIND_IDS)
