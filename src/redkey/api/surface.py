"""The whole surface: every endpoint family, in the order of the documentation."""

from __future__ import annotations

from dataclasses import replace

from redkey.api import (
    agents,
    claims,
    content,
    definitions,
    docs,
    events,
    gates,
    health,
    holds,
    inbox,
    ledger,
    oauth,
    policies,
    queues,
    receipts,
    roles,
    stream,
    tasks,
    usage,
    workflows,
    workspaces,
)
from redkey.http.route import OPERATOR, Route

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
    found: list[Route] = [route for family in FAMILIES for route in family.ROUTES]
    if open_metrics:
        return found
    return [replace(route, scopes=OPERATOR) if route.path == "/metrics" else route for route in found]
