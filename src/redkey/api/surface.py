"""All endpoint families, in the order of the documentation."""

from __future__ import annotations

from types import ModuleType

from msgspec.structs import replace

from redkey.api import (
    content,
    events,
    ledger,
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
    people,
    policies,
    projects,
    queues,
    roles,
    signup,
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
    people,
    signup,
    agents,
    roles,
    queues,
    tasks,
    claims,
    holds,
    definitions,
    simulation,
    workflows,
    projects,
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


# What operators ask of ledgers: declared apart from the shapes, and documented apart.
OPERATORS = (ledger,)


def operators_routes() -> list[Route]:
    """The routes of the operators' document."""
    return [route for family in OPERATORS for route in _routes(family)]


def routes(*, open_metrics: bool = True) -> list[Route]:
    """Every route; with `open_metrics` False, only operators may read the metrics."""
    all_routes = [*(route for family in FAMILIES for route in _routes(family)), *answered()]
    if open_metrics:
        return all_routes
    closed = replace(METRICS, scopes=OPERATOR, shared=False)
    return [Route(closed, route.handler) if route.operation is METRICS else route for route in all_routes]


def _routes(family: ModuleType) -> list[Route]:
    """The routes of a family: the ones it declares, or else its use cases in the order of their definition."""
    if hasattr(family, "ROUTES"):
        declared: list[Route] = family.ROUTES
        return declared
    return [bound(use) for use in vars(family).values() if isinstance(use, UseCase)]
