"""What operators ask of the ledger of a workspace, with an OpenAPI document of its own."""

from __future__ import annotations

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.api.docs import openapi_file
from redkey.http.files import File
from redkey.http.route import Route
from redkey.services.ordered.operations import LEDGER_OPENAPI, OPERATIONS
from redkey.services.use_case import UseCase
from redkey.services.use_cases import ledger


def openapi(call: Call) -> File:
    """The operators' OpenAPI document."""
    return openapi_file(OPERATIONS, call.services.config.public_url)


ROUTES = [
    *(bound(use) for use in vars(ledger).values() if isinstance(use, UseCase)),
    Route(LEDGER_OPENAPI, openapi),
]
