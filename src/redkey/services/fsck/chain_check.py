"""The hash chain and the Merkle tree of one topic: checks records against the running hash, stored tiles against
records.

Records are checked in the blocks of 256 that tiles cover. A correct block costs one pass of hashing and the root of its
tile; only a wrong block is checked hash by hash. If a record is damaged but its tile is not, the tile still gives the
original hashes: so the records after the damage are still checked, and the signed roots still tell whether these are
the records that were signed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256

from redkey.errors import StoreError
from redkey.ledger.chain import verify_records
from redkey.ledger.merkle import HASH_BYTES, Edge, node_hash
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import record_preimage
from redkey.ledger.tiles import TILE_BYTES, TILE_WIDTH, TileTree, tile_root
from redkey.services.fsck.evidence import Evidence
from redkey.services.fsck.report import Report

# A larger gap, in blocks, means a stray record and not missing records.
_BLOCKS_LOST = 4096
# A bound on tiles that are computed again in place of damaged ones, 8 KiB each.
_MENDED = 1024


class ChainCheck:
    """Takes the records of a topic in order; afterwards its tree answers for every size, as far as it was proven."""

    def __init__(self, evidence: Evidence, topic: str, report: Report) -> None:
        self._evidence, self._topic, self._report = evidence, topic, report
        # The head and the edge have the same size: complete blocks, and at the end the records after them.
        self.head: Head = EMPTY_HEAD
        self._edge = Edge()
        self._block: list[Record] = []
        self._named: set[int] = set()
        # For each level, the roots of tiles that no complete tile of the next level covers yet.
        self._roots: list[list[bytes]] = []
        self._mended: dict[tuple[int, int], bytes] = {}
        self._tail: list[bytes] = []
        # False from the first place on at which neither records nor tiles give the hash.
        self.known = True

    def skip(self, sequence: int) -> None:
        """Note a record that cannot be read; it is reported already."""
        self._named.add(sequence)

    def take(self, records: Iterable[Record]) -> None:
        """Take the next records as they are stored."""
        for record in records:
            end = self._edge.size + TILE_WIDTH
            if record.sequence > end + _BLOCKS_LOST * TILE_WIDTH and self.known:
                self._close_block(complete=False)
                self.known = False
            while self.known and record.sequence > end:
                self._close_block(complete=True)
                end += TILE_WIDTH
            self._block.append(record)
            if record.sequence == end or len(self._block) == TILE_WIDTH:
                self._close_block(complete=True)

    def finish(self) -> None:
        """Check the last records, and tiles that should not be there, after all records were taken."""
        if self._block:
            self._close_block(complete=False)
        tiles = self._edge.size
        for level, count in sorted(self._evidence.tile_counts(self._topic).items()):
            tiles = self._edge.size // TILE_WIDTH ** (level + 1)
            if self.known and count > tiles:
                text = f"{count - tiles} Merkle tiles of level {level} are beyond the last record"
                self._report.add("tile_extra", text, self._topic)

    def tree(self) -> TileTree | None:
        """Return the tree over what was proven; None if it is not known."""
        return TileTree(self._tile, self._edge.size, self._tail) if self.known else None

    def _tile(self, level: int, index: int) -> bytes | None:
        return self._mended.get((level, index)) or self._evidence.tile(self._topic, level, index)

    # Blocks.

    def _close_block(self, *, complete: bool) -> None:
        records, self._block = self._block, []
        edge = self._edge.copy() if self.known else _any_edge(self.head.sequence)
        head, damages = verify_records(self.head, edge, records)
        for damage in damages:
            self._report.add(damage.code, damage.message, self._topic, damage.sequence)
        if not self.known:
            self.head = head
            return
        index = self._edge.size // TILE_WIDTH
        tile = self._stored_tile(0, index) if complete else None
        sound = not damages and head.sequence == edge.size and (not complete or len(records) == TILE_WIDTH)
        if sound and not complete:
            self._tail = [leaf or b"" for leaf in _leaves(self.head, records, len(records))]
        elif not sound or tile is None or _grown(self._edge, tile_root(tile)) != edge.nodes:
            self._judge_leaves(records, tile, {one.sequence for one in damages}, head, complete=complete)
            return
        self.head, self._edge = head, edge
        if tile is not None:
            self._add_root(0, tile_root(tile))

    def _judge_leaves(
        self, records: Sequence[Record], tile: bytes | None, damaged: set[int], head: Head, *, complete: bool
    ) -> None:
        """Report what is missing or different in a wrong block, and continue with the hashes that are known."""
        first = self._edge.size + 1
        count = TILE_WIDTH if complete else max(0, head.sequence - first + 1)
        leaves = _leaves(self.head, records, count)
        present = {record.sequence for record in records}
        for place, leaf in enumerate(leaves):
            sequence = first + place
            if sequence not in present and sequence not in self._named:
                self._report.add("record_missing", "the record is not there", self._topic, sequence)
            told = tile[place * HASH_BYTES : (place + 1) * HASH_BYTES] if tile is not None else None
            if told is not None and (leaf is None or sequence in damaged):
                leaves[place] = told
            elif told is not None and told != leaf:
                text = f"its hash in the Merkle tile at level 0, index {(first - 1) // TILE_WIDTH} is another"
                self._report.add("tile_wrong", text, self._topic, sequence)
        self._named.clear()
        known = [leaf for leaf in leaves if leaf is not None]
        self.known = len(known) == count
        self._edge.extend(known)
        self.head = Head(first + count - 1 if self.known else head.sequence, head.timestamp, head.running_hash)
        if self.known and complete:
            self._settle_tile(0, (first - 1) // TILE_WIDTH, b"".join(known), tile)
        elif self.known:
            self._tail = known

    # Tiles.

    def _add_root(self, level: int, root: bytes) -> None:
        """Add the root of a proven tile to a tile of the next level."""
        if level == len(self._roots):
            self._roots.append([])
        roots = self._roots[level]
        roots.append(root)
        if len(roots) == TILE_WIDTH:
            self._roots[level] = []
            index = self._edge.size // TILE_WIDTH ** (level + 2) - 1
            data, stored = b"".join(roots), self._stored_tile(level + 1, index)
            if stored is not None and stored != data:
                text = f"the Merkle tile at level {level + 1}, index {index} is not that of the tiles below it"
                self._report.add("tile_wrong", text, self._topic)
            self._settle_tile(level + 1, index, data, stored)

    def _settle_tile(self, level: int, index: int, data: bytes, stored: bytes | None) -> None:
        if data != stored:
            if len(self._mended) >= _MENDED:
                self.known = False
                return
            self._mended[level, index] = data
        self._add_root(level, tile_root(data))

    def _stored_tile(self, level: int, index: int) -> bytes | None:
        """Return a tile as it is stored; None if it was reported as missing or cut."""
        try:
            tile = self._evidence.tile(self._topic, level, index)
        except StoreError:
            tile = b""
        if tile is not None and len(tile) == TILE_BYTES:
            return tile
        found = "missing" if tile is None else f"{len(tile)} bytes long" if tile else "not readable"
        code = "tile_missing" if tile is None else "tile_wrong"
        self._report.add(code, f"the Merkle tile at level {level}, index {index} is {found}", self._topic)
        return None


def _leaves(head: Head, records: Sequence[Record], count: int) -> list[bytes | None]:
    """Return the leaf hashes of the `count` places after the head; None where neither record nor tile gives one."""
    leaves: list[bytes | None] = [None] * count
    before: Head | Record = head
    for record in records:
        place = record.sequence - head.sequence - 1
        if record.sequence == before.sequence + 1 and place < count:
            try:
                leaves[place] = sha256(b"\x00" + record_preimage(before.running_hash, record)).digest()
            except (ValueError, struct.error):
                leaves[place] = None
        before = record
    return leaves


def _grown(edge: Edge, root: bytes) -> list[bytes]:
    """Return the nodes of an edge of complete blocks after one more block with this root."""
    nodes, bits = list(edge.nodes), edge.size // TILE_WIDTH
    while bits & 1:
        root = node_hash(nodes.pop(), root)
        bits >>= 1
    return [*nodes, root]


def _any_edge(size: int) -> Edge:
    """Return an edge of this size with meaningless hashes: only the chain is checked from here on."""
    return Edge(size, [bytes(HASH_BYTES)] * size.bit_count())
