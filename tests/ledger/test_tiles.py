"""A tree kept as tiles answers as the plain tree does, at every size, from few reads, through commits and rollbacks."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redkey.errors import TreeDamaged
from redkey.ledger import merkle
from redkey.ledger.tiles import TILE_BYTES, TILE_WIDTH, TileTree

COUNT = 66_100
EDGES = (0, 1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_792, COUNT)


class Shelf:
    """Where tiles lie, counting how often they are read."""

    def __init__(self) -> None:
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.reads = 0

    def read(self, level: int, index: int) -> bytes | None:
        self.reads += 1
        return self.tiles.get((level, index))

    def store(self, complete: list[tuple[int, int, bytes]]) -> None:
        for level, index, data in complete:
            assert (level, index) not in self.tiles, "a tile was written twice"
            assert len(data) == TILE_BYTES
            self.tiles[level, index] = data


@pytest.fixture(scope="module")
def leaves() -> list[bytes]:
    return [merkle.leaf_hash(index.to_bytes(4)) for index in range(COUNT)]


@pytest.fixture(scope="module")
def shelf(leaves: list[bytes]) -> Shelf:
    made = Shelf()
    made.store(TileTree(made.read).append(leaves))
    return made


@pytest.fixture
def tree(shelf: Shelf, leaves: list[bytes]) -> TileTree:
    return TileTree(shelf.read, COUNT, leaves[COUNT - COUNT % TILE_WIDTH :])


def test_only_complete_tiles_are_stored(shelf: Shelf, leaves: list[bytes]) -> None:
    assert set(shelf.tiles) == {(0, index) for index in range(COUNT // 256)} | {(1, 0)}
    assert shelf.tiles[0, 3] == b"".join(leaves[768:1024])
    assert shelf.tiles[1, 0][:32] == merkle.root(leaves[:256])


@pytest.mark.parametrize("size", EDGES)
def test_a_tree_opens_at_any_size_and_has_every_earlier_root(shelf: Shelf, leaves: list[bytes], size: int) -> None:
    tree = TileTree(shelf.read, size, leaves[size - size % TILE_WIDTH : size])
    assert tree.root() == merkle.root(leaves[:size])
    for earlier in (0, min(1, size), size // 3, size // 2, max(size - 1, 0)):
        assert tree.root(earlier) == merkle.root(leaves[:earlier])
        assert tree.edge(earlier).root() == tree.root(earlier)


def test_every_size_up_to_600_grows_as_the_plain_tree_does(leaves: list[bytes]) -> None:
    shelf, edge = Shelf(), merkle.Edge()
    tree = TileTree(shelf.read)
    for size, leaf in enumerate(leaves[:600], 1):
        shelf.store(tree.append([leaf]))
        edge.append(leaf)
        assert tree.root() == edge.root()
        assert tree.size == size


def test_proofs_at_many_sizes_verify(tree: TileTree, leaves: list[bytes]) -> None:
    rng = random.Random(7)
    for size in (*EDGES[1:], *(rng.randrange(1, COUNT) for _ in range(20))):
        root = merkle.root(leaves[:size])
        for index in {0, size - 1, size // 2, *(rng.randrange(size) for _ in range(10))}:
            proof = tree.inclusion_proof(index, size)
            assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
        assert merkle.verify_consistency(size, COUNT, root, tree.root(), tree.consistency_proof(size))


def test_a_proof_reads_a_tile_per_level_and_no_more(shelf: Shelf, leaves: list[bytes]) -> None:
    tree = TileTree(shelf.read, COUNT, leaves[COUNT - COUNT % TILE_WIDTH :])
    shelf.reads = 0
    tree.inclusion_proof(1_000)
    assert shelf.reads == 2
    tree.inclusion_proof(1_001)
    assert shelf.reads == 2, "the tiles of the last proof are still there"


def test_trees_for_reading_remember_together_what_they_have_looked_at(
    shelf: Shelf, tree: TileTree, leaves: list[bytes]
) -> None:
    proof = tree.for_reading().inclusion_proof(700)
    before = shelf.reads
    assert tree.for_reading().inclusion_proof(700) == proof == tree.inclusion_proof(700)
    assert shelf.reads == before
    with ThreadPoolExecutor(4) as threads:
        places = [random.Random(number).randrange(COUNT) for number in range(400)]
        found = list(threads.map(lambda place: tree.for_reading().inclusion_proof(place), places))
    for place, path in zip(places, found, strict=True):
        assert merkle.verify_inclusion(leaves[place], place, COUNT, path, tree.root())
    assert len(tree._kept) <= 8 + 4


def test_what_a_rolled_back_unit_completed_is_forgotten(leaves: list[bytes]) -> None:
    shelf = Shelf()
    tree = TileTree(shelf.read)
    shelf.store(tree.append(leaves[:200]))
    unit = tree.copy()
    given_up = dict(enumerate(unit.append(leaves[1000:1060])))
    shelf.tiles[0, 0] = given_up[0][2]
    unit.inclusion_proof(10)
    del shelf.tiles[0, 0]
    assert tree.root() == merkle.root(leaves[:200])
    shelf.store(tree.append(leaves[200:260]))
    assert tree.root() == merkle.root(leaves[:260])
    assert merkle.verify_inclusion(leaves[10], 10, 260, tree.inclusion_proof(10), tree.root())


def test_memory_holds_few_tiles_whatever_is_asked(tree: TileTree) -> None:
    for index in range(0, 60_000, 256):
        tree.inclusion_proof(index)
    assert len(tree._kept) == 8


@pytest.mark.parametrize("damage", [None, b"", bytes(TILE_BYTES - 1), bytes(TILE_BYTES + 32)])
def test_a_missing_or_cut_tile_is_named(shelf: Shelf, leaves: list[bytes], damage: bytes | None) -> None:
    def read(level: int, index: int) -> bytes | None:
        return damage if (level, index) == (0, 5) else shelf.read(level, index)

    tree = TileTree(read, COUNT, leaves[COUNT - COUNT % TILE_WIDTH :])
    tree.inclusion_proof(0)
    with pytest.raises(TreeDamaged, match="level 0, index 5 is"):
        tree.inclusion_proof(5 * 256)


def test_wrong_use_is_refused(tree: TileTree, shelf: Shelf) -> None:
    with pytest.raises(ValueError, match="opens with 3 leaf hashes, not 0"):
        TileTree(shelf.read, 3)
    for size in (-1, COUNT + 1):
        with pytest.raises(ValueError, match="so there is no tree of"):
            tree.root(size)
        with pytest.raises(ValueError, match="so there is no tree of"):
            tree.inclusion_proof(0, size)
    with pytest.raises(ValueError, match="no node"):
        tree.node(17, 0)
    with pytest.raises(ValueError, match="no node"):
        tree.node(0, COUNT)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 400), max_size=6), st.lists(st.booleans(), min_size=6, max_size=6), st.integers(0, 2**30)
)
def test_batches_commits_and_rollbacks_in_any_order(batches: list[int], kept: list[bool], seed: int) -> None:
    rng = random.Random(seed)
    shelf, history = Shelf(), []
    tree = TileTree(shelf.read)
    for batch, keep in zip(batches, kept, strict=False):
        new = [rng.randbytes(32) for _ in range(batch)]
        unit = tree.copy()
        complete = unit.append(new)
        if keep:
            tree, history = unit, history + new
            shelf.store(complete)
        assert tree.root() == merkle.root(history)
        reopened = TileTree(shelf.read, len(history), history[len(history) - len(history) % TILE_WIDTH :])
        assert reopened.root() == tree.root()
        if history:
            index, size = rng.randrange(len(history)), len(history)
            assert merkle.verify_inclusion(history[index], index, size, tree.inclusion_proof(index), tree.root())
