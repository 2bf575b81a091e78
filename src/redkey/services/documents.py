"""Documents at hand: small content that this process has written lately.

A task is mostly claimed soon after it was created, and the claim comes with its document: from here it costs no read.
What is kept was committed by this process. What is kept of a topic is forgotten as soon as another process has written
to it, because that may have erased some.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from redkey.ledger.ports import Content, Unit

# What is larger is not kept; so much is kept in all.
_LARGEST_BYTES = 4096
_BYTES = 16 * 1024 * 1024


class Documents:
    """Content by topic and hash, as much as there is room for; what came first leaves first. Threads may share it."""

    __slots__ = ("_bytes", "_guard", "_kept", "_others")

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Content]] = {}
        self._bytes = 0
        self._others: dict[str, int] = {}
        self._guard = threading.Lock()

    def begin(self, unit: Unit, topic: str) -> None:
        """A unit begins: what is kept of its topic holds only if nobody else has written there."""
        others = unit.others
        if self._others.get(topic) != others:
            self._others[topic] = others
            self.clear(topic)

    def clear(self, topic: str) -> None:
        """Forget everything of a topic."""
        with self._guard:
            self._bytes -= sum(len(one.data) for one in self._kept.pop(topic, {}).values())

    def find(self, topic: str, sha256: str) -> Content | None:
        kept = self._kept.get(topic)
        return None if kept is None else kept.get(sha256)

    def keep(self, topic: str, contents: Iterable[Content]) -> None:
        """Keep what a unit has committed."""
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
        """Forget content that was erased."""
        for sha256 in hashes:
            with self._guard:
                dropped = self._kept.get(topic, {}).pop(sha256, None)
                self._bytes -= len(dropped.data) if dropped is not None else 0

    def _drop_first(self) -> None:
        """Drop the first content of the topic that has been kept longest."""
        topic = next(iter(self._kept))
        kept = self._kept[topic]
        if kept:
            self._bytes -= len(kept.pop(next(iter(kept))).data)
        if not kept:
            del self._kept[topic]
