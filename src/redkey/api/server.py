"""The server itself over HTTP: health, metrics, and the documentation of its API."""

from __future__ import annotations

from functools import partial

from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.api.docs import docs_page, openapi_file
from redkey.api.metrics import MEDIA_TYPE
from redkey.http.files import File
from redkey.http.route import Route
from redkey.services.use_cases import server as use_cases
from redkey.shapes import server


def metrics(call: Call) -> Raw:
    """Metrics for Prometheus; only operators see the names of queues and roles."""
    return Raw(call.services.metrics.text(named="operator" in call.actor.scopes), MEDIA_TYPE)


async def openapi(call: Call) -> File:
    """The OpenAPI document. To make it takes long, once: in a thread it holds up nobody else."""
    services = call.services
    return await call.in_thread(partial(openapi_file, services.operations, services.config.public_url))


async def docs(call: Call) -> File:
    """The documentation as a web page."""
    services = call.services
    return await call.in_thread(partial(docs_page, services.operations, services.config.public_url))


ROUTES = [
    bound(use_cases.readyz),
    bound(use_cases.find_ids),
    Route(server.METRICS, metrics),
    Route(server.OPENAPI, openapi),
    Route(server.DOCS, docs),
]
