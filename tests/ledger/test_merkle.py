"""The tree agrees with published Certificate Transparency values and with a second, naive implementation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.ledger import merkle

# The eight leaves of the Certificate Transparency test suites, and the roots of the trees of the first 0, 1, ... 8.
PUBLISHED_LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
PUBLISHED_ROOTS = [
    bytes.fromhex(text)
    for text in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
# (leaf index, size) -> path, and (old, new) -> proof, as the same suites give them.
PUBLISHED_PATHS = {
    (0, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (5, 8): (
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
    (2, 3): ("fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",),
}
PUBLISHED_CONSISTENCY = {
    (1, 1): (),
    (1, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (6, 8): (
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
}
SIZES = 200


class Naive:
    """RFC 6962 as its text defines it, by recursion over lists: slow, and unlike the code under test."""

    def __init__(self, data: Sequence[bytes]) -> None:
        self.data = list(data)
        self._kept: dict[tuple[int, int], bytes] = {}

    def root(self, begin: int, end: int) -> bytes:
        if (begin, end) not in self._kept:
            self._kept[begin, end] = self._root(begin, end)
        return self._kept[begin, end]

    def _root(self, begin: int, end: int) -> bytes:
        if begin == end:
            return sha256().digest()
        if end - begin == 1:
            return sha256(bytes([0]) + self.data[begin]).digest()
        middle = begin + self.split(end - begin)
        return sha256(bytes([1]) + self.root(begin, middle) + self.root(middle, end)).digest()

    @staticmethod
    def split(width: int) -> int:
        k = 1
        while k * 2 < width:
            k *= 2
        return k

    def path(self, index: int, begin: int, end: int) -> list[bytes]:
        if end - begin == 1:
            return []
        middle = begin + self.split(end - begin)
        if index < middle:
            return [*self.path(index, begin, middle), self.root(middle, end)]
        return [*self.path(index, middle, end), self.root(begin, middle)]

    def consistency(self, old: int, begin: int, end: int, *, known: bool) -> list[bytes]:
        if old == end:
            return [] if known else [self.root(begin, end)]
        middle = begin + self.split(end - begin)
        if old <= middle:
            return [*self.consistency(old, begin, middle, known=known), self.root(middle, end)]
        return [*self.consistency(old, middle, end, known=False), self.root(begin, middle)]

    def node(self, height: int, index: int) -> bytes:
        return self.root(index << height, (index + 1) << height)


@pytest.fixture(scope="module")
def naive() -> Naive:
    return Naive([f"leaf {index}".encode() for index in range(SIZES)])


@pytest.fixture(scope="module")
def leaves(naive: Naive) -> list[bytes]:
    return [merkle.leaf_hash(data) for data in naive.data]


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_roots_are_those_of_certificate_transparency() -> None:
    hashes = [merkle.leaf_hash(data) for data in PUBLISHED_LEAVES]
    assert [merkle.root(hashes[:size]) for size in range(9)] == PUBLISHED_ROOTS


def test_proofs_are_those_of_certificate_transparency() -> None:
    node = Naive(PUBLISHED_LEAVES).node
    for (index, size), path in PUBLISHED_PATHS.items():
        assert [one.hex() for one in merkle.inclusion_proof(index, size, node)] == list(path)
    for (old, new), proof in PUBLISHED_CONSISTENCY.items():
        assert [one.hex() for one in merkle.consistency_proof(old, new, node)] == list(proof)


def test_every_inclusion_proof_up_to_200_agrees_and_verifies(naive: Naive, leaves: list[bytes]) -> None:
    for size in range(1, SIZES + 1):
        root = naive.root(0, size)
        for index in range(size):
            proof = merkle.inclusion_proof(index, size, naive.node)
            assert proof == naive.path(index, 0, size)
            assert merkle.verify_inclusion(leaves[index], index, size, proof, root)


def test_every_consistency_proof_up_to_200_agrees_and_verifies(naive: Naive) -> None:
    for new in range(SIZES + 1):
        for old in range(new + 1):
            proof = merkle.consistency_proof(old, new, naive.node)
            assert proof == (naive.consistency(old, 0, new, known=True) if old else [])
            assert merkle.verify_consistency(old, new, naive.root(0, old), naive.root(0, new), proof)


def test_the_edge_has_every_root_and_can_be_taken_up_at_any_size(naive: Naive, leaves: list[bytes]) -> None:
    edge = merkle.Edge()
    for size in range(SIZES + 1):
        assert edge.root() == naive.root(0, size)
        assert merkle.edge_at(size, naive.node).nodes == edge.nodes
        if size < SIZES:
            twin = edge.copy()
            edge.append(leaves[size])
            assert twin.root() == naive.root(0, size)


def test_an_edge_with_the_wrong_number_of_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="2 nodes, not 1"):
        merkle.Edge(3, [bytes(32)])


@pytest.mark.parametrize(("index", "size"), [(0, 1), (0, 2), (5, 8), (6, 7), (130, 199)])
def test_any_flipped_bit_of_an_inclusion_is_refused(naive: Naive, leaves: list[bytes], index: int, size: int) -> None:
    proof, root = naive.path(index, 0, size), naive.root(0, size)
    for bit in range(256):
        assert not merkle.verify_inclusion(flipped(leaves[index], bit), index, size, proof, root)
        assert not merkle.verify_inclusion(leaves[index], index, size, proof, flipped(root, bit))
        for at in range(len(proof)):
            wrong = [*proof[:at], flipped(proof[at], bit), *proof[at + 1 :]]
            assert not merkle.verify_inclusion(leaves[index], index, size, wrong, root)


@pytest.mark.parametrize(("old", "new"), [(1, 2), (3, 4), (4, 8), (6, 8), (101, 199)])
def test_any_flipped_bit_of_a_consistency_proof_is_refused(naive: Naive, old: int, new: int) -> None:
    proof, before, after = naive.consistency(old, 0, new, known=True), naive.root(0, old), naive.root(0, new)
    for bit in range(256):
        assert not merkle.verify_consistency(old, new, flipped(before, bit), after, proof)
        assert not merkle.verify_consistency(old, new, before, flipped(after, bit), proof)
        for at in range(len(proof)):
            wrong = [*proof[:at], flipped(proof[at], bit), *proof[at + 1 :]]
            assert not merkle.verify_consistency(old, new, before, after, wrong)


def test_a_proof_proves_one_place_in_one_tree(naive: Naive, leaves: list[bytes]) -> None:
    for size, index in ((7, 3), (8, 3), (100, 64), (199, 198)):
        proof, root = naive.path(index, 0, size), naive.root(0, size)
        for other in range(SIZES):
            if other != index:
                assert not merkle.verify_inclusion(leaves[index], other, size, proof, root)
        assert not merkle.verify_inclusion(leaves[index], index, size, [*proof, proof[-1]], root)
        assert not merkle.verify_inclusion(leaves[index], index, size, proof[:-1], root)
        assert not merkle.verify_inclusion(leaves[index], index, size, proof[1:], root)


def test_a_forked_tree_is_consistent_with_no_proof(naive: Naive) -> None:
    fork = Naive([*naive.data[:50], b"another history", *naive.data[51:]])
    for old, new in ((51, 60), (60, 61), (64, 128)):
        for proof in (naive.consistency(old, 0, new, known=True), fork.consistency(old, 0, new, known=True)):
            assert not merkle.verify_consistency(old, new, naive.root(0, old), fork.root(0, new), proof)


def test_hostile_proofs_are_refused_without_hashing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(left: bytes, right: bytes) -> bytes:
        raise AssertionError("hashed")

    monkeypatch.setattr(merkle, "node_hash", never)
    good = bytes(32)
    long = [good] * 100_000
    assert not merkle.verify_inclusion(good, 0, 2**62, long, good)
    assert not merkle.verify_consistency(3, 2**62, good, good, long)
    assert not merkle.verify_inclusion(good, 0, 2**63, [good] * 63, good)
    assert not merkle.verify_inclusion(good, 5, 5, [], good)
    assert not merkle.verify_inclusion(good, -1, 5, [good] * 3, good)
    assert not merkle.verify_inclusion(good[1:], 0, 1, [], good[1:])
    assert not merkle.verify_inclusion(good, 0, 2, [b"short"], good)
    assert not merkle.verify_consistency(5, 4, good, good, [])
    assert not merkle.verify_consistency(-1, 4, good, good, [])
    assert not merkle.verify_consistency(0, 4, good, good, [])
    assert not merkle.verify_consistency(4, 4, good, bytes([1]) * 32, [])


def test_proofs_of_what_is_not_there_are_not_made(naive: Naive) -> None:
    with pytest.raises(ValueError, match="leaf 3 is not in a tree of 3"):
        merkle.inclusion_proof(3, 3, naive.node)
    with pytest.raises(ValueError, match="cannot continue"):
        merkle.consistency_proof(4, 3, naive.node)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=80), st.randoms(use_true_random=False))
def test_any_tree_proves_its_leaves_and_its_past(data: list[bytes], rng: random.Random) -> None:
    tree, size = Naive(data), len(data)
    root = merkle.root(map(merkle.leaf_hash, data))
    assert root == tree.root(0, size)
    index, old = rng.randrange(size), rng.randrange(1, size + 1)
    path = merkle.inclusion_proof(index, size, tree.node)
    assert merkle.verify_inclusion(merkle.leaf_hash(data[index]), index, size, path, root)
    assert not merkle.verify_inclusion(merkle.leaf_hash(data[index] + b"x"), index, size, path, root)
    proof = merkle.consistency_proof(old, size, tree.node)
    assert merkle.verify_consistency(old, size, tree.root(0, old), root, proof)


@given(
    st.integers(0, 2**64),
    st.integers(0, 2**64),
    st.lists(st.binary(min_size=30, max_size=33), max_size=70),
    st.binary(),
)
def test_verification_never_raises(one: int, other: int, proof: list[bytes], root: bytes) -> None:
    assert not merkle.verify_inclusion(bytes(32), one, other, proof, root)
    assert not merkle.verify_consistency(one, other, root, bytes(32), proof)


def test_a_leaf_cannot_be_passed_off_as_a_node(naive: Naive) -> None:
    for left, right in pairwise(naive.data[:4]):
        joined = merkle.leaf_hash(left) + merkle.leaf_hash(right)
        assert merkle.leaf_hash(joined) != merkle.node_hash(merkle.leaf_hash(left), merkle.leaf_hash(right))
