"""A real server for the tests of the SDK, over TCP and over a Unix socket, and a workspace of its own for each test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from redkey.client import RedKey
from redkey.shapes.workspaces import Scope
from tests.harness.server import Server, serving


@pytest.fixture(autouse=True)
def no_redkey_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests find is what they were given, whatever the machine has set."""
    for name in list(os.environ):
        if name.startswith("REDKEY_") and name != "REDKEY_TEST_LONG":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all tests that need no other. The path of its socket must be short."""
    with tempfile.TemporaryDirectory(prefix="rk") as directory:
        path = Path(directory)
        with serving(path, "--uds", str(path / "s")) as started:
            yield started


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers that end with the test, all on the same data directory."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(serving(tmp_path, *arguments))


class Place:
    """A fresh workspace, as the SDK sees it."""

    def __init__(self, server: Server, workspace_id: str, key: str) -> None:
        self.server, self.workspace_id, self.key = server, workspace_id, key
        self.url, self.unix = server.url, f"unix:{server.uds}"

    def client(self, key: str | None = None) -> RedKey:
        return RedKey(self.url, key or self.key)

    def new_key(self, *scopes: Scope, agent_id: str | None = None) -> str:
        """Another key of the workspace."""
        with self.client() as admin:
            return admin.keys.create(self.workspace_id, scopes=scopes, agent_id=agent_id).api_key


@pytest.fixture
def place(server: Server) -> Place:
    with RedKey(server.url, server.key) as operator:
        made = operator.workspaces.create()
        return Place(server, made.workspace_id, made.api_key)


@pytest.fixture
def rk(place: Place) -> Iterator[RedKey]:
    """A sync client with the admin key of a fresh workspace."""
    with place.client() as client:
        yield client
