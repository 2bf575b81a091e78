"""Every operation that the server documents, through each client and over each kind of socket."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redkey.client import AsyncRedKey, RedKey
from tests.client.conftest import Place
from tests.client.scenario import play

Seen = set[tuple[str, str]]


class Watched(httpx2.HTTPTransport):
    """Remembers what was asked for; the transport seam makes it possible."""

    def __init__(self, seen: Seen, uds: str | None) -> None:
        super().__init__(uds=uds, verify=False)
        self._seen = seen

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._seen.add((request.method, request.url.path))
        return super().handle_request(request)


class AsyncWatched(httpx2.AsyncHTTPTransport):
    """The same, awaited."""

    def __init__(self, seen: Seen, uds: str | None) -> None:
        super().__init__(uds=uds, verify=False)
        self._seen = seen

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._seen.add((request.method, request.url.path))
        return await super().handle_async_request(request)


def documented(place: Place) -> dict[tuple[str, str], str]:
    """Every operation of the server's own OpenAPI document: method and pattern -> its id.

    The bus, under /api, has clients of its own (`redkey.bus.client`).
    """
    with place.client() as rk:
        paths: dict[str, dict[str, Any]] = rk.server.openapi()["paths"]
    return {
        (method.upper(), re.sub(r"\{\w+\}", "[^/]+", path)): operation["operationId"]
        for path, operations in paths.items()
        if not path.startswith("/api/")
        for method, operation in operations.items()
    }


def named(seen: Seen, operations: dict[tuple[str, str], str]) -> set[str]:
    """The operations that requests were; literal paths before patterns."""
    ordered = sorted(operations.items(), key=lambda one: one[0][1].count("[^/]+"))
    found = set()
    for method, path in seen:
        name = next(name for (of, pattern), name in ordered if of == method and re.fullmatch(pattern, path))
        found.add(name)
    return found


def keys(place: Place) -> list[str]:
    """Of the admin, of another admin who approves, of the operator."""
    return [place.key, place.new_key("admin"), place.server.key]


@pytest.mark.parametrize("over", ["tcp", "uds"])
def test_the_sync_client_can_do_everything_that_the_server_documents(place: Place, tmp_path: Path, over: str) -> None:
    seen: Seen = set()
    url, uds = (place.url, None) if over == "tcp" else (place.unix, str(place.server.uds))
    with ExitStack() as stack:
        opened = [stack.enter_context(RedKey(url, key, transport=Watched(seen, uds))) for key in keys(place)]
        asyncio.run(play(*opened, place.workspace_id, tmp_path))
    operations = documented(place)
    assert sorted(set(operations.values()) - named(seen, operations)) == []


@pytest.mark.parametrize("over", ["tcp", "uds"])
def test_the_async_client_can_do_everything_that_the_server_documents(place: Place, tmp_path: Path, over: str) -> None:
    seen: Seen = set()
    url, uds = (place.url, None) if over == "tcp" else (place.unix, str(place.server.uds))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            clients = [AsyncRedKey(url, key, transport=AsyncWatched(seen, uds)) for key in keys(place)]
            opened = [await stack.enter_async_context(client) for client in clients]
            await play(*opened, place.workspace_id, tmp_path)

    asyncio.run(run())
    operations = documented(place)
    assert sorted(set(operations.values()) - named(seen, operations)) == []


def test_clients_without_a_transport_of_their_own_reach_both_sockets(place: Place) -> None:
    for url in (place.url, place.unix):
        with RedKey(url, place.key) as rk:
            assert rk.server.health().status == "ok"

        async def ask(url: str = url) -> str:
            async with AsyncRedKey(url, place.key) as rk:
                return (await rk.server.health()).status

        assert asyncio.run(ask()) == "ok"
