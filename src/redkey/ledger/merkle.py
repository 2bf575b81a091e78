"""The Merkle tree of RFC 6962: hashes, roots, the right edge, and proofs.

Pure functions over 32-byte hashes. Where the hashes of a stored tree come from is `tiles`; what a leaf is
(the 211 bytes of the running hash) is `running_hash`. Proofs may come from anyone, so the work of
a check is bounded by the height of the tree: a proof of the wrong length is refused before anything is hashed. A wrong
proof is a result, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32
# Sequences are signed 64-bit in HCS, so no tree is larger, and no proof has more hashes than that has bits.
SIZE_LIMIT = 2**63 - 1
PROOF_LIMIT = 63
EMPTY_ROOT = sha256(b"").digest()

# The hash of the perfect subtree of 2^height leaves that begins at leaf index * 2^height.
NodeReader = Callable[[int, int], bytes]


def leaf_hash(data: bytes) -> bytes:
    """Hash a leaf. Leaves and nodes have different prefixes, so that neither can be taken for the other."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash a node over its two children."""
    return sha256(b"\x01" + left + right).digest()


class Edge:
    """The right edge of a growing tree: the roots of its perfect subtrees, largest first.

    Appending and the root need nothing else: one hash per bit that is set in the size.
    """

    __slots__ = ("nodes", "size")

    def __init__(self, size: int = 0, nodes: Iterable[bytes] = ()) -> None:
        self.size = size
        self.nodes = list(nodes)
        if len(self.nodes) != size.bit_count():
            raise ValueError(f"the edge of a tree of {size} leaves has {size.bit_count()} nodes, not {len(self.nodes)}")

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        nodes, size = self.nodes, self.size
        self.size = size + 1
        # Every trailing one bit of the size is a perfect subtree that the new leaf completes to a larger one.
        while size & 1:
            leaf = sha256(b"\x01" + nodes.pop() + leaf).digest()
            size >>= 1
        nodes.append(leaf)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes in order."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """Return the root of the tree."""
        return fold(self.nodes)

    def copy(self) -> Edge:
        return Edge(self.size, self.nodes)


def fold(nodes: Sequence[bytes]) -> bytes:
    """Return the root over adjacent perfect subtrees, largest first."""
    if not nodes:
        return EMPTY_ROOT
    folded = nodes[-1]
    for node in reversed(nodes[:-1]):
        folded = sha256(b"\x01" + node + folded).digest()
    return folded


def root(hashes: Iterable[bytes]) -> bytes:
    """Return the root of a tree with these leaf hashes."""
    edge = Edge()
    edge.extend(hashes)
    return edge.root()


def edge_at(size: int, node: NodeReader) -> Edge:
    """Return the right edge that a stored tree had with `size` leaves."""
    return Edge(size, _perfect_nodes(0, size, node))


def inclusion_proof(index: int, size: int, node: NodeReader) -> list[bytes]:
    """Return the sibling hashes from leaf `index` up to the root of the first `size` leaves, lowest first."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size} leaves")
    proof: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            proof.append(_range_hash(middle, end, node))
            end = middle
        else:
            proof.append(_range_hash(begin, middle, node))
            begin = middle
    proof.reverse()
    return proof


def consistency_proof(old: int, new: int, node: NodeReader) -> list[bytes]:
    """Return the hashes that prove that the tree of `new` leaves begins with the tree of `old` leaves."""
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {new} leaves cannot continue one of {old}")
    if old == 0 or old == new:
        return []
    proof: list[bytes] = []
    begin, end = 0, new
    while old != end:
        middle = begin + _split(end - begin)
        if old <= middle:
            proof.append(_range_hash(middle, end, node))
            end = middle
        else:
            proof.append(_range_hash(begin, middle, node))
            begin = middle
    # If this subtree is the whole old tree, the reader has its hash already: the old root.
    if begin:
        proof.append(_range_hash(begin, end, node))
    proof.reverse()
    return proof


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], expected_root: bytes) -> bool:
    """Return whether the leaf hash is at `index` of the tree with this size and root."""
    if not 0 <= index < size <= SIZE_LIMIT:
        return False
    # Up to the height where leaf and right edge separate, every level has a sibling; above it only left ones do.
    inner = (index ^ (size - 1)).bit_length()
    if len(proof) != inner + (index >> inner).bit_count() or not _are_hashes(leaf, expected_root, *proof):
        return False
    found = leaf
    for height, sibling in enumerate(proof):
        on_the_left = height >= inner or index >> height & 1
        found = node_hash(sibling, found) if on_the_left else node_hash(found, sibling)
    return found == expected_root


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether the tree (new, new_root) begins with all of the tree (old, old_root)."""
    if not 0 <= old <= new <= SIZE_LIMIT:
        return False
    if old == 0 or old == new:
        return not proof and old_root == (EMPTY_ROOT if old == 0 else new_root)
    # Both roots are rebuilt from the largest perfect subtree at the old right edge.
    shift = (old & -old).bit_length() - 1
    inner = ((old - 1) ^ (new - 1)).bit_length() - shift
    index = (old - 1) >> shift
    whole = old == 1 << shift
    length = inner + (index >> inner).bit_count() + (not whole)
    if len(proof) != length or not _are_hashes(old_root, new_root, *proof):
        return False
    old_found = new_found = old_root if whole else proof[0]
    for height, sibling in enumerate(proof if whole else proof[1:]):
        if height >= inner or index >> height & 1:
            old_found = node_hash(sibling, old_found)
            new_found = node_hash(sibling, new_found)
        else:
            new_found = node_hash(new_found, sibling)
    return old_found == old_root and new_found == new_root


def _are_hashes(*hashes: bytes) -> bool:
    return all(len(one) == HASH_BYTES for one in hashes)


def _split(width: int) -> int:
    """Return the largest power of two below `width`: where RFC 6962 splits a range."""
    return 1 << (width - 1).bit_length() - 1


def _range_hash(begin: int, end: int, node: NodeReader) -> bytes:
    return fold(_perfect_nodes(begin, end, node))


def _perfect_nodes(begin: int, end: int, node: NodeReader) -> list[bytes]:
    """Return the roots of the perfect subtrees of a range, as RFC 6962 splits it."""
    nodes: list[bytes] = []
    while begin < end:
        height = (end - begin).bit_length() - 1
        nodes.append(node(height, begin >> height))
        begin += 1 << height
    return nodes
