"""The servers and workspaces of the API's tests, for tests that send raw bytes to them."""

from tests.api.conftest import operator, server, start, workspace

__all__ = ["operator", "server", "start", "workspace"]
