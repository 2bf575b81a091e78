"""Fills a data directory without HTTP: many commands per unit, through the coordinator like all other commands.

For a running server this is a second process on the directory, so it may run at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.registry import RegisterAgent
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.services.coordinator import Coordinator
from redkey.services.outcome import Outcome
from redkey.services.turns import BATCH_LIMIT
from redkey.services.workspaces import workspaces
from redkey.stores.ids import SystemIds
from redkey.stores.sqlite import SqliteStore

Asked = tuple[Any, tuple[Content, ...]]


class Bulk:
    """The first workspace of a data directory, open for many commands at once."""

    def __init__(self, data: Path) -> None:
        self.store, self.ids = SqliteStore(data, create=False), SystemIds()
        self._fatal: list[BaseException] = []
        self._coordinator = Coordinator(self.store, self.ids, on_fatal=self._fatal.append)
        self.topic, workspace = next(iter(workspaces(self.store)))
        self._caller = Actor(workspace.workspace_id, "key_" + self.ids.ulid(), frozenset({"admin"}))

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Bulk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def do(self, asked: Iterable[Asked]) -> list[Outcome]:
        """Run commands, as many per unit as fit; return their outcomes in order."""
        source: Iterator[Asked] = iter(asked)
        outcomes: list[Outcome] = []
        while batch := list(islice(source, BATCH_LIMIT)):
            outcomes += await asyncio.gather(*(self._submit(command, contents) for command, contents in batch))
        return outcomes

    async def count(self, asked: Iterable[Asked]) -> int:
        """Run commands whose outcomes are not needed; return their number."""
        source: Iterator[Asked] = iter(asked)
        done = 0
        while batch := list(islice(source, BATCH_LIMIT)):
            done += len(await asyncio.gather(*(self._submit(command, contents) for command, contents in batch)))
        return done

    async def _submit(self, command: Any, contents: Sequence[Content]) -> Outcome:
        return await self._coordinator.submit(self.topic, self._caller, command, tuple(contents))

    # What is filled in.

    def agent(self, slug: str) -> Asked:
        """A registered agent."""
        card = content.document({"name": slug}, self.ids.nonce())
        return RegisterAgent("agt_" + self.ids.ulid(), slug, content.ref(card)), (card,)

    def task(self, queue_id: str, title: str = "A task") -> Asked:
        """A task that may be claimed at once."""
        document = content.document({"title": title}, self.ids.nonce())
        return CreateTask("task_" + self.ids.ulid(), queue_id, content.ref(document)), (document,)
