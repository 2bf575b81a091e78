"""The server itself: liveness, readiness, metrics, and its API documents."""

from __future__ import annotations

from typing import Annotated, Any

from redkey.shapes.fields import Reply, one_of
from redkey.shapes.operation import OPERATOR, READ, Operation, answers


class Health(Reply, frozen=True, kw_only=True):
    """The server is alive."""

    status: Annotated[str, one_of("ok")]


class Readiness(Reply, frozen=True, kw_only=True):
    """The server accepts requests, and its store can be read and written."""

    # The kind of store, with its version.
    store: str
    status: Annotated[str, one_of("ready")]
    # Of RedKey.
    version: str = ""
    # The clock of the server.
    time: str = ""


class FoundIds(Reply, frozen=True, kw_only=True):
    """The first ids that begin with a prefix, in order."""

    items: tuple[str, ...]
    # False if there are more.
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
    summary="The server can serve requests.",
    replies={503: "It is stopping, its store is unusable or full, or another process blocks all writers."},
    method_name="server.ready",
)
METRICS = Operation(
    "metrics",
    "GET",
    "/metrics",
    scopes=(*READ, *OPERATOR),
    shared=True,
    summary="Metrics for Prometheus.",
    description="Metrics for Prometheus: sums over all workspaces; for operators, what waits by queue and role.",
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
    summary="This API as a web page.",
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
    summary="Find ids that begin with a prefix.",
    description="Find ids of tasks, runs, gates, agents, messages, webhooks, live claims and events by a prefix; an "
    "event's has eight characters or more after `evt_`.",
    method_name="server.find_ids",
)

OPERATIONS = (HEALTHZ, READYZ, METRICS, OPENAPI, DOCS, FIND_IDS)
