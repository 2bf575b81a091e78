"""A place: a workspace as a reply sees it while its unit is open.

It has the world just after the command, and what is stored, together with what the unit adds and has not written yet.
So a reply is correct without waiting for the commit and without another read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redkey.ledger.ports import Content, ContentFacts, Entry, Reader, Row
from redkey.ledger.record import LOCAL_PAYER, Record
from redkey.readmodel.rows import entity
from redkey.readmodel.view import Document, read_document
from redkey.reducers.entities import Task
from redkey.reducers.world import World
from redkey.services.documents import Documents
from redkey.services.outcome import Settled


class Place:
    """The world, and a reader that shows what the unit adds to the store."""

    __slots__ = ("_contents", "_documents", "_entries", "_reader", "_records", "erased", "topic", "world")

    def __init__(
        self,
        reader: Reader,
        topic: str,
        world: World,
        contents: Mapping[str, Content],
        entries: Sequence[Entry],
        records: Sequence[Settled],
        documents: Documents,
    ) -> None:
        """`entries` and `records` are what the unit has recorded so far, place by place."""
        self._documents = documents
        self._reader, self.topic, self.world = reader, topic, world
        self._contents, self._entries, self._records = contents, entries, records
        # What the unit will erase when it ends: later replies must not show it.
        self.erased: set[str] = set()

    # The interface of views (`redkey.readmodel.view.Shelf`).

    def row(self, topic: str, kind: str, key: str) -> Row | None:
        """Return a row as it is stored. What this unit changes is in the world, and is looked up there first."""
        return self._reader.row(topic, kind, key)

    def content(self, topic: str, sha256: str) -> Content | None:
        if sha256 in self.erased:
            return None
        at_hand = self._contents.get(sha256) or self._documents.find(topic, sha256)
        return at_hand or self._reader.content(topic, sha256)

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None:
        if sha256 in self.erased:
            return None
        brought = self._contents.get(sha256)
        if brought is not None:
            return ContentFacts(len(brought.data), brought.pinned)
        return self._reader.content_facts(topic, sha256)

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        """Return records about a subject, including those of this unit, which have no hash yet."""
        mine = [
            Record(topic, one.sequence, one.timestamp, LOCAL_PAYER, b"", entry.wire)
            for entry, one in zip(self._entries, self._records, strict=True)
            if subject in entry.subjects
        ]
        if newest_first:
            mine = [one for one in reversed(mine) if not after or one.sequence < after]
            return (mine + list(self._reader.events(topic, subject, after, limit, newest_first=True)))[:limit]
        stored = list(self._reader.events(topic, subject, after, limit))
        return (stored + [one for one in mine if one.sequence > after])[:limit]

    # Shortcuts.

    def document(self, sha256: str) -> Document | None:
        """Return a document by its hash; None if it was erased."""
        return read_document(self, self.topic, sha256)

    def task(self, task_id: str) -> Task:
        """Return a task that must exist: from the world, or from its row if it has left the world."""
        live = self.world.tasks.get(task_id)
        if live is not None:
            return live
        row = self._reader.row(self.topic, "task", task_id)
        if row is None:
            raise AssertionError("a task without a row")
        task: Task = entity(row)
        return task
