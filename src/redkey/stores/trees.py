"""Cached Merkle trees for readers, extended by the records that were committed since."""

from __future__ import annotations

import threading

from redkey.ledger.ports import Reader
from redkey.ledger.record import Head
from redkey.ledger.tail import head_of, leaf_hashes, open_tree, records_after
from redkey.ledger.tiles import TileTree

# How many trees are cached; each takes at most about 70 KiB.
_TREES = 64


class ReadTrees:
    """The most recently used trees of one store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._trees: dict[str, tuple[TileTree, Head]] = {}
        self._guard = threading.Lock()

    def tree(self, topic: str) -> TileTree:
        """Return the tree of all records of a topic that are committed now."""
        with self._guard:
            kept = self._trees.pop(topic, None)
            tree, head = kept or open_tree(self._reader, topic)
            for batch in records_after(self._reader, topic, head.sequence):
                tree.append(leaf_hashes(head.running_hash, batch))
                head = head_of(batch[-1])
            self._trees[topic] = tree, head
            if len(self._trees) > _TREES:
                del self._trees[next(iter(self._trees))]
            return tree.for_reading()
