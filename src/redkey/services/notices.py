"""Notices: the events of a workspace with their texts, for interfaces that show them to people and agents.

A follower resumes at the place it has reached, so that nothing is skipped after a crash. A notice has what a reader
needs beside the event: the title of its task, the text of a message, the names of the agent it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from redkey.commands.decision import not_found
from redkey.ledger.ports import SequencedStore
from redkey.readmodel.events import show
from redkey.readmodel.plan_text import task_document
from redkey.readmodel.rows import entity
from redkey.readmodel.view import read_document
from redkey.services.outcome import Settled, settled
from redkey.services.subscriptions import Filter, Subscription, Subscriptions
from redkey.services.workspaces import topic_of
from redkey.shapes.events import Event
from redkey.wire.events import InboxSent, TaskClaimMissed, TaskClaimRejected
from redkey.wire.ids import parse_stream

_PAGE = 100
_WAIT_SECONDS = 60.0
_HUMANS = "human"


class Words(msgspec.Struct, frozen=True):
    """Return the text of an inbox message; empty if it was erased."""

    subject: str
    body: str


class Notice(msgspec.Struct, frozen=True):
    """One event, and its text."""

    event: Event
    # The agent it is for, by id and slug; empty if it is for all.
    agent: tuple[str, ...] = ()
    # The task it is about, and its title; empty if there is none, or its text was erased.
    task_id: str = ""
    title: str = ""
    message: Words | None = None


class Batch:
    """Return the next records for a follower, and the place that they reach."""

    def __init__(self, store: SequencedStore, topic: str, records: Sequence[Settled]) -> None:
        self._store, self._topic, self._records = store, topic, records
        self.reached = records[-1].sequence

    def notices(self, wants: Callable[[str], bool]) -> Iterator[Notice]:
        """Yield a notice for each event of a wanted type; their texts are read one by one."""
        for record in self._records:
            if wants(record.event.type):
                yield self._notice(record)

    def _notice(self, record: Settled) -> Notice:
        event, payload = show(record.event, record.sequence, record.timestamp), record.event.payload
        agent: tuple[str, ...] = ()
        message = None
        if isinstance(payload, InboxSent):
            agent = self._names(payload.to.removeprefix("agent:")) if payload.to != _HUMANS else ()
            said = read_document(self._store, self._topic, payload.body_ref.sha256) or {}
            message = Words(said.get("subject", ""), said.get("body", ""))
        elif isinstance(payload, TaskClaimMissed | TaskClaimRejected):
            agent = self._names(payload.agent_id or parse_stream(record.event.stream.stream_id).subject)
        task_id: str = event.data.get("taskId", "")
        return Notice(event, agent, task_id, self._title(task_id), message)

    def _names(self, agent_id: str) -> tuple[str, ...]:
        row = self._store.row(self._topic, "agent", agent_id)
        return (agent_id, entity(row).slug) if row is not None else (agent_id,)

    def _title(self, task_id: str) -> str:
        row = self._store.row(self._topic, "task", task_id) if task_id else None
        document = task_document(self._store, self._topic, entity(row)) if row is not None else None
        return str((document or {}).get("title", ""))


class Following:
    """One follower. It sets `position` after it has processed a batch; until then it gets the same records again."""

    def __init__(self, store: SequencedStore, topic: str, after: int, subscription: Subscription) -> None:
        self._store, self._topic, self._subscription = store, topic, subscription
        self.position = after

    async def next(self) -> Batch:
        """Return the records after the position, as soon as there are some."""
        while not (records := self._store.read(self._topic, self.position, _PAGE)):
            # Woken by records of this and other processes.
            self._subscription.position = self.position
            await self._subscription.wait(_WAIT_SECONDS)
        return Batch(self._store, self._topic, [settled(record) for record in records])

    def leave(self) -> None:
        """Stop following; must be called at the end."""
        self._subscription.leave()


class Notices:
    """The records of all workspaces of a store, for their followers."""

    def __init__(self, store: SequencedStore, subscriptions: Subscriptions) -> None:
        self._store, self._subscriptions = store, subscriptions

    def follow(self, workspace_id: str, after: int | None = None) -> Following:
        """Follow a workspace from a place on, or from now on; Refused if there is no such workspace."""
        topic = topic_of(self._store, workspace_id)
        if topic is None:
            raise not_found("workspace")
        start = self._store.head(topic).sequence if after is None else after
        return Following(self._store, topic, start, self._subscriptions.open(topic, start, Filter()))
