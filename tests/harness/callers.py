"""Callers of use cases: all parts of a server on a real data directory, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from redkey.app import App
from redkey.config import Config
from redkey.services.caller import Caller
from redkey.services.use_case import UseCase
from redkey.shapes.operation import Operation

T = TypeVar("T")
Repeats = Literal["records", "parts", "bytes"]


class Callers:
    """The callers in the first workspace of a server."""

    def __init__(self, app: App) -> None:
        self.app, self.store = app, app.store
        principal = app.keys.authenticate(app.first_key or "")
        assert principal is not None
        self._principal, self.topic, self.workspace_id = principal, principal.topic, app.workspace_id
        self.admin = self.caller("admin")

    def caller(
        self, *scopes: str, agent_id: str = "", idempotency_key: str = "", repeats: Repeats = "records"
    ) -> Caller:
        """A caller with these scopes; with an idempotency key, its requests may be repeated."""
        actor = msgspec.structs.replace(self._principal.actor, scopes=frozenset(scopes), agent_id=agent_id)
        found = Caller(self.app.services)
        found.authenticated(msgspec.structs.replace(self._principal, actor=actor))
        if idempotency_key:
            found.identify(Operation("test", "POST", "/test", repeats=repeats), idempotency_key, b"", b"")
        return found

    def with_key(self, api_key: str) -> Caller:
        """The holder of a real key, with the scopes and the agent that the ledger records."""
        principal = self.app.keys.authenticate(api_key)
        assert principal is not None
        found = Caller(self.app.services)
        found.authenticated(principal)
        return found

    async def call(self, use: UseCase[Any, Any], *arguments: Any, caller: Caller | None = None, **named: Any) -> Any:
        """The reply of a use case, once it is durable; the admin calls unless another caller is passed."""
        who = caller or self.admin
        return await who.reply(use(who, *arguments, **named))

    @property
    def head(self) -> int:
        return self.store.head(self.topic).sequence


@asynccontextmanager
async def _opened(directory: Path, **settings: Any) -> AsyncIterator[Callers]:
    fatal: list[BaseException] = []
    app = App(Config(data=directory, public_url="http://127.0.0.1", **settings), fatal.append)
    try:
        yield Callers(app)
    finally:
        await app.finish_stop()
    assert not fatal


def with_callers(directory: Path, test: Callable[[Callers], Awaitable[T]], **settings: Any) -> T:
    """Run a test with the callers of a new server with these settings."""

    async def whole() -> T:
        async with _opened(directory, **settings) as callers:
            return await test(callers)

    return asyncio.run(whole())
