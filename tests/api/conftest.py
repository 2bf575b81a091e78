"""Servers and callers for the tests of the API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.client import Client
from tests.harness.server import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server shared by most tests; each test has its own workspace."""
    with serving(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers that end with the test, all on the same data directory."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def begin(*arguments: str, **options: Any) -> Server:
            return stack.enter_context(serving(tmp_path, *arguments, **options))

        yield begin


@pytest.fixture
def operator(server: Server) -> Iterator[Client]:
    """The first key."""
    with server.client() as client:
        yield client


class Workspace:
    """A new workspace, and callers in it."""

    def __init__(self, server: Server, created: dict[str, Any]) -> None:
        self.server, self.workspace_id = server, created["workspaceId"]
        self.admin = server.client(created["apiKey"])
        self._callers = [self.admin]

    def key(self, *scopes: str, agent_id: str | None = None) -> dict[str, Any]:
        """Create a key of the workspace."""
        body = {"scopes": list(scopes), **({"agentId": agent_id} if agent_id else {})}
        reply = self.admin.post(f"/workspaces/{self.workspace_id}/api-keys", body)
        assert reply.status == 201, reply.text
        made: dict[str, Any] = reply.json
        return made

    def caller(self, *scopes: str, agent_id: str | None = None) -> Client:
        """Return a caller with a new key."""
        client = self.server.client(self.key(*scopes, agent_id=agent_id)["apiKey"])
        self._callers.append(client)
        return client

    def close(self) -> None:
        for caller in self._callers:
            caller.close()


@pytest.fixture
def workspace(server: Server, operator: Client) -> Iterator[Workspace]:
    """A workspace that only this test uses; `workspace.admin` calls in it."""
    made = Workspace(server, operator.post("/workspaces", {}).json)
    yield made
    made.close()


@pytest.fixture
def other(server: Server, operator: Client) -> Iterator[Workspace]:
    """Another workspace on the same server."""
    made = Workspace(server, operator.post("/workspaces", {}).json)
    yield made
    made.close()
