"""The whole surface: every endpoint family, in the order of the documentation."""

from __future__ import annotations

from types import ModuleType

from msgspec.structs import replace

from redkey.api import (
    content,
    events,
    login_codes,
    oauth,
    receipts,
    server,
    stream,
    workflows,
)
from redkey.api.bound import answered, bound
from redkey.http.route import Route
from redkey.services.use_case import UseCase
from redkey.services.use_cases import (
    agents,
    claims,
    definitions,
    gates,
    holds,
    inbox,
    policies,
    queues,
    roles,
    simulation,
    tasks,
    usage,
    webhooks,
    workspaces,
)
from redkey.shapes.operation import OPERATOR
from redkey.shapes.server import METRICS

FAMILIES = (
    workspaces,
    policies,
    oauth,
    login_codes,
    agents,
    roles,
    queues,
    tasks,
    claims,
    holds,
    definitions,
    simulation,
    workflows,
    gates,
    inbox,
    webhooks,
    events,
    receipts,
    stream,
    content,
    usage,
    server,
)


def routes(*, open_metrics: bool = True) -> list[Route]:
    """Every route; the figures can be closed to all but operators."""
    found = [*(route for family in FAMILIES for route in _routes(family)), *answered()]
    if open_metrics:
        return found
    return [
        Route(replace(route.operation, scopes=OPERATOR), route.handler) if route.operation is METRICS else route
        for route in found
    ]


def _routes(family: ModuleType) -> list[Route]:
    """The routes of a family: its use cases, in the order they are written, or those that it declares."""
    if hasattr(family, "ROUTES"):
        declared: list[Route] = family.ROUTES
        return declared
    return [bound(use) for use in vars(family).values() if isinstance(use, UseCase)]
