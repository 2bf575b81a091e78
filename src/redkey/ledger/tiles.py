"""The tree as tiles of 256 hashes, so that a store writes 8 KiB once per 256 records and reads O(log n).

A tile at level L holds the roots of perfect subtrees of 256^L leaves: level 0 leaf hashes, level 1 the roots
of complete level-0 tiles, and so on. Only complete tiles are stored, and they never change. The part
after them is rebuilt when a tree is opened: at most 255 leaf hashes from the records, the rest from stored tiles.

The store keeps tiles and records; `merkle` has the hashing and the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from redkey.errors import TreeDamaged
from redkey.ledger import merkle
from redkey.ledger.merkle import HASH_BYTES, Edge

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
TILE_BYTES = TILE_WIDTH * HASH_BYTES
# Stored tiles kept in memory with the nodes above their hashes, 16 KiB each: the upper ones are in every proof.
_KEPT_TILES = 8

# The bytes of the complete tile (level, index); None if the store has none.
TileReader = Callable[[int, int], bytes | None]
# A tile to store: level, index, bytes.
Tile = tuple[int, int, bytes]


class _Growing:
    """An incomplete tile: its hashes, and all nodes of perfect subtrees above them, row by row."""

    __slots__ = ("rows",)

    def __init__(self, hashes: Iterable[bytes] = ()) -> None:
        self.rows: list[list[bytes]] = [[] for _ in range(TILE_HEIGHT + 1)]
        self.extend(hashes)

    def extend(self, hashes: Iterable[bytes]) -> None:
        """Add hashes, no more than the tile has space for, and the nodes that they complete."""
        row = self.rows[0]
        row += hashes
        for height in range(1, TILE_HEIGHT + 1):
            above = self.rows[height]
            pairs = range(2 * len(above), len(row) - 1, 2)
            if not pairs:
                return
            above += [sha256(b"\x01" + row[at] + row[at + 1]).digest() for at in pairs]
            row = above

    def edge(self) -> list[bytes]:
        """Return the roots of the largest perfect subtrees, largest first."""
        return [row[-1] for row in reversed(self.rows) if len(row) & 1]

    def copy(self) -> _Growing:
        twin = _Growing()
        twin.rows = [row.copy() for row in self.rows]
        return twin


def _rows(tile: bytes) -> list[bytes]:
    """Return a complete tile and the nodes above it, as concatenated rows of hashes; the last row is its root."""
    rows = [tile]
    for _ in range(TILE_HEIGHT):
        row = rows[-1]
        # The two children of a node are adjacent, so they are hashed without a copy.
        rows.append(b"".join([sha256(b"\x01" + row[at : at + 64]).digest() for at in range(0, len(row), 64)]))
    return rows


def tile_root(tile: bytes) -> bytes:
    """Return the root over the hashes of a complete tile."""
    return _rows(tile)[TILE_HEIGHT]


class TileTree:
    """A tree that grows at its right edge, with proofs for every size it ever had.

    `tail` holds the leaf hashes after the last complete tile (size % 256 of them). A tree belongs to one
    writer: a unit of work appends to a `copy()` and keeps it if the unit commits.
    """

    __slots__ = ("_growing", "_kept", "_read", "size")

    def __init__(self, read: TileReader, size: int = 0, tail: Sequence[bytes] = ()) -> None:
        if len(tail) != size % TILE_WIDTH:
            raise ValueError(f"a tree of {size} leaves opens with {size % TILE_WIDTH} leaf hashes, not {len(tail)}")
        self.size = size
        self._read = read
        self._kept: dict[tuple[int, int], list[bytes]] = {}
        # The incomplete tile of each level; lowest level first.
        self._growing: list[_Growing] = []
        for level in range(-(-size.bit_length() // TILE_HEIGHT)):
            self._growing.append(_Growing(tail if level == 0 else self._roots_below(level)))

    def append(self, leaves: Iterable[bytes]) -> list[Tile]:
        """Add leaf hashes in order; return the tiles that became complete, for the caller to store."""
        complete: list[Tile] = []
        rest = list(leaves)
        while rest:
            room = TILE_WIDTH - self.size % TILE_WIDTH
            some, rest = rest[:room], rest[room:]
            self.size += len(some)
            self._grow(0, some, complete)
        return complete

    def _grow(self, level: int, hashes: Iterable[bytes], complete: list[Tile]) -> None:
        """Add hashes to the incomplete tile of a level; when it is complete, add its root to the level above."""
        if level == len(self._growing):
            self._growing.append(_Growing())
        tile = self._growing[level]
        tile.extend(hashes)
        if tile.rows[TILE_HEIGHT]:
            complete.append((level, (self.size >> TILE_HEIGHT * (level + 1)) - 1, b"".join(tile.rows[0])))
            self._growing[level] = _Growing()
            self._grow(level + 1, tile.rows[TILE_HEIGHT], complete)

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the tree, or of its first `size` leaves."""
        if size is None or size == self.size:
            return merkle.fold([node for tile in reversed(self._growing) for node in tile.edge()])
        return self.edge(size).root()

    def edge(self, size: int) -> Edge:
        """Return the right edge that the tree had with `size` leaves."""
        self._check_size(size)
        return merkle.edge_at(size, self.node)

    def inclusion_proof(self, index: int, size: int | None = None) -> list[bytes]:
        """Prove that leaf `index` is in the tree of `size` leaves (by default all of them)."""
        size = self.size if size is None else size
        self._check_size(size)
        return merkle.inclusion_proof(index, size, self.node)

    def consistency_proof(self, old: int, new: int | None = None) -> list[bytes]:
        """Prove that the tree of `new` leaves (by default all) begins with the tree of `old` leaves."""
        new = self.size if new is None else new
        self._check_size(new)
        return merkle.consistency_proof(old, new, self.node)

    def node(self, height: int, index: int) -> bytes:
        """Return the root of the perfect subtree of 2^height leaves that begins at leaf index * 2^height."""
        if index < 0 or index + 1 << height > self.size:
            raise ValueError(f"the tree holds {self.size} leaves and no node {index} at height {height}")
        level, row = divmod(height, TILE_HEIGHT)
        tile, offset = divmod(index, TILE_WIDTH >> row)
        if tile == self.size >> TILE_HEIGHT * (level + 1):
            return self._growing[level].rows[row][offset]
        return self._tile(level, tile)[row][offset * HASH_BYTES : (offset + 1) * HASH_BYTES]

    def copy(self) -> TileTree:
        """Return a tree that grows independently of this one, over the same stored tiles."""
        twin = TileTree(self._read)
        twin.size = self.size
        twin._growing = [tile.copy() for tile in self._growing]
        # A dictionary of its own: tiles completed by a unit that is rolled back must not be remembered here.
        twin._kept = self._kept.copy()
        return twin

    def for_reading(self) -> TileTree:
        """Return a tree of the present size for any thread to read; tiles that it loads are cached here."""
        twin = self.copy()
        twin._kept = self._kept
        return twin

    def _roots_below(self, level: int) -> Iterable[bytes]:
        """Return the hashes of the incomplete tile of a level above 0: the roots of the complete tiles below it."""
        last = self.size >> TILE_HEIGHT * level
        for index in range(last - last % TILE_WIDTH, last):
            yield _rows(self._load(level - 1, index))[TILE_HEIGHT]

    def _tile(self, level: int, index: int) -> list[bytes]:
        # The most recently used tile is last. Reading threads may share it: at worst one computes a tile again.
        rows = self._kept.pop((level, index), None) or _rows(self._load(level, index))
        self._kept[level, index] = rows
        for oldest in tuple(self._kept)[:-_KEPT_TILES]:
            self._kept.pop(oldest, None)
        return rows

    def _load(self, level: int, index: int) -> bytes:
        data = self._read(level, index)
        if data is None or len(data) != TILE_BYTES:
            found = "missing" if data is None else f"{len(data)} bytes long"
            raise TreeDamaged(f"the Merkle tile at level {level}, index {index} is {found}")
        return data

    def _check_size(self, size: int) -> None:
        if not 0 <= size <= self.size:
            raise ValueError(f"the tree holds {self.size} leaves, so there is no tree of {size}")
