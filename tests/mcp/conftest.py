"""MCP clients of the official SDK against real `redkey mcp` processes and a real server."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation

from redkey.client import RedKey
from tests.harness.server import Server, serving

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def no_redkey_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the tests find is what they were given, whatever the machine has set; slots are the test's own."""
    for name in list(os.environ):
        if name.startswith("REDKEY_") and not name.startswith("REDKEY_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short path: the socket of the bus is in it."""
    with tempfile.TemporaryDirectory(prefix="rk") as directory:
        yield Path(directory)


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    with serving(place) as started:
        yield started


@pytest.fixture
def rk(server: Server) -> Iterator[RedKey]:
    """A client with the first key of the server."""
    with RedKey(server.url, server.key) as client:
        yield client


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project directory."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


class ToolRefused(Exception):
    """A tool answered with an error."""


class Agent:
    """An MCP client: calls tools and gives what they answer."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[str] = []

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The one object that the tool answers with; ToolRefused with its sentence when it is an error."""

        async def heard(done: float, total: float | None, message: str | None) -> None:
            self.progress.append(message or "")

        result = await self.client.call_tool(tool, arguments, progress_callback=heard)
        if result.is_error:
            raise ToolRefused(result.content[0].text)  # type: ignore[union-attr]
        answer = result.structured_content
        assert answer is not None
        assert "status" not in answer
        return answer

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """The sentence that a tool refuses with."""
        with pytest.raises(ToolRefused) as refused:
            await self(tool, **arguments)
        assert "Traceback" not in str(refused.value)
        return str(refused.value)


def parameters(directory: Path, *options: str, **variables: str) -> StdioServerParameters:
    """How a client starts `redkey mcp` in a directory."""
    environment = {**os.environ, **variables}
    command = ["-m", "redkey", "mcp", *options]
    return StdioServerParameters(command=sys.executable, args=command, cwd=directory, env=environment)


@asynccontextmanager
async def agent(
    directory: Path, server: Server | None = None, *options: str, name: str = "claude-code"
) -> AsyncIterator[Agent]:
    """A client with a process of its own."""
    variables = {"REDKEY_DATA": str(server.data)} if server is not None else {}
    started = parameters(directory, *options, **variables)
    async with Client(started, client_info=Implementation(name=name, version="1")) as client:
        yield Agent(client)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test on an event loop."""

    async def bounded() -> None:
        async with asyncio.timeout(4 * PATIENCE_SECONDS):
            await work()

    asyncio.run(bounded())
