"""A cache of small content that this process has written recently.

Most tasks are claimed soon after they were created, and the claim returns the task's document: from here without a
read. The cache holds only content that this process committed. All of a topic's content is dropped as soon as another
process has written to the topic, because that may have erased some.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from redkey.ledger.ports import Content, Unit

# The largest document that is cached, and the size of the whole cache.
_LARGEST_BYTES = 4096
_BYTES = 16 * 1024 * 1024


class Documents:
    """Content by topic and hash, up to a total size; the oldest is dropped first. Threads may share it."""

    __slots__ = ("_bytes", "_guard", "_kept", "_others")

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Content]] = {}
        self._bytes = 0
        self._others: dict[str, int] = {}
        self._guard = threading.Lock()

    def begin(self, unit: Unit, topic: str) -> None:
        """Start a unit: the cache of its topic is valid only if no other process has written there."""
        others = unit.others
        if self._others.get(topic) != others:
            self._others[topic] = others
            self.clear(topic)

    def clear(self, topic: str) -> None:
        """Drop everything of a topic."""
        with self._guard:
            self._bytes -= sum(len(one.data) for one in self._kept.pop(topic, {}).values())

    def find(self, topic: str, sha256: str) -> Content | None:
        kept = self._kept.get(topic)
        return None if kept is None else kept.get(sha256)

    def keep(self, topic: str, contents: Iterable[Content]) -> None:
        """Cache what a unit has committed."""
        if not contents:
            return
        with self._guard:
            kept = self._kept.setdefault(topic, {})
            for content in contents:
                size = len(content.data)
                if size <= _LARGEST_BYTES and content.sha256 not in kept:
                    kept[content.sha256] = content
                    self._bytes += size
            while self._bytes > _BYTES:
                self._drop_first()

    def erase(self, topic: str, hashes: Iterable[str]) -> None:
        """Drop content that was erased."""
        for sha256 in hashes:
            with self._guard:
                dropped = self._kept.get(topic, {}).pop(sha256, None)
                self._bytes -= len(dropped.data) if dropped is not None else 0

    def _drop_first(self) -> None:
        """Drop the oldest content of the topic that was cached first."""
        topic = next(iter(self._kept))
        kept = self._kept[topic]
        if kept:
            self._bytes -= len(kept.pop(next(iter(kept))).data)
        if not kept:
            del self._kept[topic]
