"""The whole surface: every endpoint family, in the order of the documentation."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from redkey.api import (
    content,
    definitions,
    docs,
    events,
    gates,
    health,
    ledger,
    oauth,
    policies,
    receipts,
    stream,
    usage,
    workflows,
    workspaces,
)
from redkey.api.bound import bound
from redkey.http.route import OPERATOR, Route
from redkey.services.use_case import UseCase, use_case
from redkey.services.use_cases import agents, claims, holds, inbox, queues, roles, tasks
from redkey.shapes.operation import ANSWERS
from redkey.shapes.operations import operations

FAMILIES = (
    workspaces,
    policies,
    oauth,
    agents,
    roles,
    queues,
    tasks,
    claims,
    holds,
    definitions,
    workflows,
    gates,
    inbox,
    ledger,
    events,
    receipts,
    stream,
    content,
    usage,
    health,
    docs,
)


def routes(*, open_metrics: bool = True) -> list[Route]:
    """Every route; the figures can be closed to all but operators."""
    found = [route for family in FAMILIES for route in _routes(family)]
    found += [bound(use_case(operation)(ANSWERS[operation])) for operation in operations() if operation in ANSWERS]
    if open_metrics:
        return found
    return [replace(route, scopes=OPERATOR) if route.path == "/metrics" else route for route in found]


def _routes(family: ModuleType) -> list[Route]:
    """The routes of a family: its use cases, in the order they are written, or those that it declares."""
    if hasattr(family, "ROUTES"):
        declared: list[Route] = family.ROUTES
        return declared
    return [bound(use) for use in vars(family).values() if isinstance(use, UseCase)]
