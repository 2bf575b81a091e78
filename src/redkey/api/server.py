"""What operators and programs ask of the server itself: health, figures, and the documentation of its API."""

from __future__ import annotations

from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.api.docs import docs_page, openapi_file
from redkey.api.metrics import MEDIA_TYPE
from redkey.http.files import File
from redkey.http.route import Route
from redkey.services.use_cases import server as use_cases
from redkey.shapes import server


def metrics(call: Call) -> Raw:
    """Figures for Prometheus."""
    return Raw(call.services.metrics.text(), MEDIA_TYPE)


def openapi(call: Call) -> File:
    """The OpenAPI document."""
    return openapi_file(call.services.operations, call.services.config.public_url)


def docs(call: Call) -> File:
    """The documentation as a page."""
    return docs_page(call.services.operations, call.services.config.public_url)


ROUTES = [
    bound(use_cases.readyz),
    bound(use_cases.find_ids),
    Route(server.METRICS, metrics),
    Route(server.OPENAPI, openapi),
    Route(server.DOCS, docs),
]
