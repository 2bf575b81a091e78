"""What operators look at: is it alive, can it serve, what does it count."""

from __future__ import annotations

from typing import Literal

import msgspec

from redkey.api.call import Call, Raw
from redkey.api.metrics import MEDIA_TYPE
from redkey.http.problems import Declined
from redkey.http.route import Route


class Health(msgspec.Struct, frozen=True):
    """The server answers."""

    status: Literal["ok"] = "ok"


class Readiness(msgspec.Struct, frozen=True):
    """The server takes requests, and its store can be read and written."""

    # What keeps the records, with its version.
    store: str
    status: Literal["ready"] = "ready"


async def healthz(call: Call) -> Health:
    return Health()


async def readyz(call: Call) -> Readiness:
    if call.services.coordinator.stopping:
        raise Declined(503, "stopping", "The server is stopping.")
    store = call.services.store
    store.topics()
    await call.in_thread(store.check_writable)
    return Readiness(store.engine)


async def metrics(call: Call) -> Raw:
    return Raw(call.services.metrics.text(), MEDIA_TYPE)


ROUTES = [
    Route("GET", "/healthz", healthz, reply=Health, summary="The process is alive."),
    Route(
        "GET",
        "/readyz",
        readyz,
        reply=Readiness,
        summary="The server can serve.",
        replies={503: "It is stopping, its store cannot be used or is full, or another process blocks all writers."},
    ),
    Route("GET", "/metrics", metrics, media=("text/plain",), summary="Figures for Prometheus."),
]
