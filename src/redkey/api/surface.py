"""The whole surface: every endpoint family, in the order of the documentation."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from redkey.api.route import Route

FAMILIES = (
    "workspaces",
    "oauth",
    "agents",
    "roles",
    "queues",
    "tasks",
    "claims",
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


def routes() -> list[Route]:
    """Every route."""
    found: list[Route] = []
    for family in FAMILIES:
        if find_spec(f"redkey.api.{family}") is not None:
            found += importlib.import_module(f"redkey.api.{family}").ROUTES
    return found
