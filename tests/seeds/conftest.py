"""Servers and callers for the tests of the seeds, as the tests of the API have them."""

from __future__ import annotations

from tests.api.conftest import operator, other, server, start, workspace

__all__ = ["operator", "other", "server", "start", "workspace"]
