"""The endpoint `/mcp`: checks the caller and the origin, and loads the MCP application at the first request.

It imports nothing of the `mcp` package, so that a server without the extra can run, and one with it starts as fast.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable

from redkey.http.asgi import Mount
from redkey.http.exchange import Exchange, header_lines
from redkey.http.problems import MEDIA_TYPE, Declined, answer
from redkey.http.security import SECURITY

PATH = "/mcp"
# The name under which the application finds the caller's agent in the state of a request.
AGENT = "agent"


class McpDoor:
    """The handler of `/mcp`. `admit` returns the agent of the caller's key, or raises Declined."""

    def __init__(
        self,
        url: Callable[[], str],
        check: Callable[[Exchange], None],
        admit: Callable[[Exchange], str],
    ) -> None:
        self._url, self._check, self._admit = url, check, admit
        self._mount: Mount | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, exchange: Exchange) -> None:
        try:
            self._check(exchange)
            agent_id = self._admit(exchange)
            mount = self._mount or await self._load()
        except Declined as declined:
            refused = answer(declined)
            headers = [(b"content-type", MEDIA_TYPE.encode()), *SECURITY, *refused.headers]
            exchange.reply(refused.status, header_lines(headers), refused.body)
            return
        await mount(exchange, {AGENT: agent_id})

    async def _load(self) -> Mount:
        async with self._loading:
            if self._mount is None:
                try:
                    # The import takes up to a second, so it runs in a thread while the server answers others.
                    http = await asyncio.to_thread(importlib.import_module, "redkey.mcp.http")
                except ImportError:
                    detail = "This server has no MCP support: install redkey[mcp], then restart the server."
                    raise Declined(501, "extra_missing", detail) from None
                mount = Mount(http.application(self._url))
                await mount.start()
                self._mount = mount
            return self._mount

    async def stop(self) -> None:
        """Stop the application."""
        if self._mount is not None:
            await self._mount.stop()
