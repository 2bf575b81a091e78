"""Documents at hand: small content that this process has written lately.

A task is mostly claimed soon after it was created, and the claim comes with its document: from here it costs no read.
What is kept was committed by this process. All of it is forgotten as soon as another process has written, because that
may have erased some.
"""

from __future__ import annotations

from collections.abc import Iterable

from redkey.ledger.ports import Content, Unit

# What is larger is not kept; so much is kept in all.
_LARGEST_BYTES = 4096
_BYTES = 16 * 1024 * 1024


class Documents:
    """Content by topic and hash, as much as there is room for; what came first leaves first."""

    __slots__ = ("_bytes", "_kept", "_others")

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Content] = {}
        self._bytes = 0
        self._others: int | None = None

    def begin(self, unit: Unit) -> None:
        """A unit begins: what is kept holds only if nobody else has written."""
        if self._others != unit.others:
            self._others = unit.others
            self.clear()

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def find(self, topic: str, sha256: str) -> Content | None:
        return self._kept.get((topic, sha256))

    def keep(self, topic: str, contents: Iterable[Content]) -> None:
        """Keep what a unit has committed."""
        kept = self._kept
        for content in contents:
            size = len(content.data)
            if size <= _LARGEST_BYTES and (topic, content.sha256) not in kept:
                kept[topic, content.sha256] = content
                self._bytes += size
        while self._bytes > _BYTES:
            self._drop(next(iter(kept)))

    def erase(self, topic: str, hashes: Iterable[str]) -> None:
        """Forget content that was erased."""
        for sha256 in hashes:
            if (topic, sha256) in self._kept:
                self._drop((topic, sha256))

    def _drop(self, place: tuple[str, str]) -> None:
        self._bytes -= len(self._kept.pop(place).data)
