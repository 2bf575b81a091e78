"""What a requirement of A2A is held against: clients of two workspaces, a worker, and the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from a2a.types import (
    ListTasksRequest,
    Task,
)
from a2a.utils import errors

from tests.a2a.talk import Talk, Worker
from tests.harness import acts
from tests.harness.client import Client


@dataclass
class Scene:
    """The client of a test, one that streams, one of another workspace, and the owner of the first."""

    talk: Talk
    streaming: Talk
    stranger: Talk
    owner: Client
    workspace_id: str

    async def worker(self) -> Worker:
        return await asyncio.to_thread(Worker, self.owner)

    async def head(self) -> int:
        return await asyncio.to_thread(acts.head, self.owner)

    async def completed(self, **more: Any) -> Task:
        """A task that a worker has completed with an artifact."""
        task, worker = await self.talk.send(**more), await self.worker()
        await asyncio.to_thread(worker.take, task.id)
        await asyncio.to_thread(worker.artifact, name="report", content="x")
        await asyncio.to_thread(worker.complete, summary="Done.")
        return task


async def refused(kind: type[errors.A2AError], call: Awaitable[Any]) -> None:
    """The call is refused in this way and no other."""
    caught: list[Exception] = []
    try:
        await call
    except errors.A2AError as error:
        caught.append(error)
    assert [type(one) for one in caught] == [kind], caught


async def first_of(stream: Any) -> Any:
    async with aclosing(stream) as events:
        return await anext(aiter(events))


async def listed(talk: Talk, **wanted: Any) -> Any:
    return await talk.client.list_tasks(ListTasksRequest(**wanted), context=talk.context())
