"""The servers and workspaces of the API's tests, for tests that speak to them in raw bytes."""

from tests.api.conftest import operator, server, start, workspace

__all__ = ["operator", "server", "start", "workspace"]
