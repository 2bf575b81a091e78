"""`/mcp` of a server: streamable HTTP without sessions. Each call acts with the key or token of its request.

The tools call the server's own API through the SDK, so that a call over MCP is checked like any other. This module
imports the `mcp` package; `redkey.mcp.door` loads it at the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings

from redkey.client import AsyncRedKey
from redkey.errors import ClientError
from redkey.mcp.door import AGENT
from redkey.mcp.server import build
from redkey.mcp.session import AgentSession, live_claims

DEFAULT_QUEUE = "default"
_AGENT = b"x-redkey-agent"

Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


class HttpSessions:
    """A session for each call, with the credentials of its request."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url

    @asynccontextmanager
    async def open(self, ctx: Context[Any, Any]) -> AsyncIterator[AgentSession]:
        headers = ctx.headers or {}
        credential = headers.get("authorization", "").partition(" ")[2].strip()
        async with AsyncRedKey(self._url(), credential, timeout=15, max_retries=1) as client:
            agent_id = headers.get(_AGENT.decode(), "")
            if agent_id:
                await _renew(client, agent_id)
            yield AgentSession(client, agent_id, DEFAULT_QUEUE)


async def _renew(client: AsyncRedKey, agent_id: str) -> None:
    """Renew the leases of the agent: every call shows that it is at work."""
    held = [claim async for claim in live_claims(client, agent_id)]
    with suppress(ClientError):
        await asyncio.gather(*(client.claims.heartbeat(claim.claim_id) for claim in held))


def application(url: Callable[[], str]) -> Application:
    """The ASGI application of `/mcp`; `McpDoor` has checked the caller, and puts its agent into the request's state."""
    # `McpDoor` checks Host and Origin, as for the rest of the server.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    served = build(HttpSessions(url)).streamable_http_app(stateless_http=True, transport_security=unchecked)

    async def with_agent(
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        if scope["type"] == "http":
            # A caller may send this header too; it does not count.
            kept = [header for header in scope["headers"] if header[0] != _AGENT]
            scope = {**scope, "headers": [*kept, (_AGENT, scope["state"][AGENT].encode())]}
        await served(scope, receive, send)

    return with_agent
