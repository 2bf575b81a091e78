"""One server for all tests of the A2A door; each test has its own tasks, and its own workspace where it needs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.a2a.talk import GRPC, Worker
from tests.harness.client import Client
from tests.harness.server import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("a2a"), config=GRPC + 'public_roles = ["greeter"]\n') as running:
        yield running


@pytest.fixture(scope="session")
def owner(server: Server) -> Iterator[Client]:
    """The first key, by the HTTP API."""
    with server.client() as client:
        yield client


@pytest.fixture
def worker(owner: Client) -> Worker:
    return Worker(owner)
