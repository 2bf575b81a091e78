"""The live session of a project on the bus of its server, joined at the first call of a bus tool."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from redkey.bus import AsyncBusClient
from redkey.bus.home import find_home
from redkey.errors import BusLost, BusRefused
from redkey.mcp.place import project_name

if TYPE_CHECKING:
    from redkey.bus.runtime.events import Message
    from redkey.mcp.stdio import StdioSessions

# Messages that arrive within this time are returned together.
_TOGETHER_SECONDS = 0.05


class ProjectBus:
    """The agent of this process in the session named after its project. A local server has a bus, and is started
    if it is not running."""

    def __init__(self, sessions: StdioSessions) -> None:
        self._sessions = sessions
        self._client: AsyncBusClient | None = None
        self._name = ""
        self._lock = asyncio.Lock()

    async def send(self, ctx: Context[Any, Any], to: str, text: str) -> str:
        """Send a message to one agent, or to all; return its id."""
        client = await self._joined(ctx)
        if to == "all":
            return (await client.send(None, text, to_all=True)).id
        known = {agent.id for agent in await client.agents()}
        if to not in known:
            others = ", ".join(sorted(known - {self._name})) or "none yet"
            raise ToolError(f"There is no agent {to[:64]!r} in the live session. Its agents are: {others}.")
        return (await client.send(to, text)).id

    async def receive(self, ctx: Context[Any, Any], wait_seconds: float) -> list[tuple[str, str, str]]:
        """Return the messages that arrived, as (id, sender, text)."""
        client = await self._joined(ctx)
        messages: list[Message] = []
        timeout = max(wait_seconds, _TOGETHER_SECONDS)
        while True:
            try:
                messages.append(await asyncio.wait_for(client.receive(), timeout))
            except TimeoutError:
                return [(message.id, message.src, message.text) for message in messages]
            timeout = _TOGETHER_SECONDS

    async def agents(self, ctx: Context[Any, Any]) -> tuple[str, str, list[tuple[str, str]]]:
        """Return the session, this agent, and all agents in it."""
        client = await self._joined(ctx)
        agents = await client.agents()
        return client.session, self._name, [(agent.id, agent.name or "") for agent in agents]

    async def leave(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _joined(self, ctx: Context[Any, Any]) -> AsyncBusClient:
        async with self._lock, self._sessions.open(ctx):
            if self._client is None:
                place = self._sessions.place
                home = place.data / "bus" if place is not None and place.data is not None else find_home(os.environ)
                client = AsyncBusClient(home, timeout=10, reconnect_seconds=10)
                name = self._sessions.name.replace("@", ".")
                try:
                    session = await client.open_session(project_name(self._sessions.directory))
                    await client.join(session, name, self._sessions.name)
                except (BusLost, BusRefused, OSError):
                    await client.close()
                    raise
                self._client, self._name = client, name
            return self._client
