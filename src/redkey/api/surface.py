"""The whole surface: every endpoint family, in the order of the documentation."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec

from redkey.api.route import OPERATOR, Route

FAMILIES = (
    "workspaces",
    "oauth",
    "agents",
    "roles",
    "queues",
    "tasks",
    "claims",
    "holds",
    "definitions",
    "workflows",
    "gates",
    "inbox",
    "ledger",
    "events",
    "receipts",
    "stream",
    "content",
    "usage",
    "health",
    "docs",
)


def routes(*, open_metrics: bool = True) -> list[Route]:
    """Every route; the figures can be closed to all but operators."""
    found: list[Route] = []
    for family in FAMILIES:
        if find_spec(f"redkey.api.{family}") is not None:
            found += importlib.import_module(f"redkey.api.{family}").ROUTES
    if open_metrics:
        return found
    return [replace(route, scopes=OPERATOR) if route.path == "/metrics" else route for route in found]
