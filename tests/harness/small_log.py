"""A small log in memory: records, tree, signers and witnesses, for tests that create receipts and break them."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from redkey.ledger.checkpoint import Checkpoint, log_name, origin_of, sign_checkpoint
from redkey.ledger.cosignature import cosign
from redkey.ledger.merkle import leaf_hash
from redkey.ledger.note import COSIGNATURE, ED25519, Note
from redkey.ledger.proof import LogProof
from redkey.ledger.receipt import build_receipt, prove
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import GENESIS, chained
from redkey.ledger.signer import Signer
from redkey.ledger.tiles import TileTree
from redkey.wire.canonical import canonical

LOG_ID = "0k3j4h5k6j7h8g9f"
WORKSPACE = "wk_01J0000000000000000000000W"
ORIGIN = origin_of(LOG_ID, WORKSPACE, 1)
START = 1_778_177_700 * 10**9


def seeded(name: str, seed: int, algorithm: int = ED25519) -> Signer:
    """A key that is the same in every run."""
    return Signer(name, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32), algorithm)


SIGNER = seeded(log_name(LOG_ID), 1)
NEXT_SIGNER = seeded(log_name(LOG_ID), 2)
OTHER_LOG = seeded(log_name("another0log0of0somebody"), 3)
WITNESSES = [seeded(f"witness{number}.example/w", 10 + number, COSIGNATURE) for number in range(3)]


def claimed(number: int, **payload: Any) -> bytes:
    """The wire of a claim, one for each number."""
    ulid = f"01J00000000000000000{number:06d}"
    return canonical(
        {
            "wire": "1.1",
            "wire_id": f"wire_{ulid}",
            "type": "task.claimed",
            "sender": "system",
            "ts": "2026-05-07T18:15:00Z",
            "stream": {
                "stream_id": f"task:task_{ulid}:attempt:1",
                "stream_seq": 3,
                "context_id": "queue:queue_podcast",
            },
            "state": {"category": "working", "terminal": False},
            "payload": {"agent_id": f"agt_{ulid}", "claim_id": f"clm_{ulid}", **payload},
        }
    )


class SmallLog:
    """One topic of a log."""

    def __init__(self, count: int = 0, *, seed: str = "") -> None:
        self.records: list[Record] = []
        self.tiles: dict[tuple[int, int], bytes] = {}
        self.tree = TileTree(lambda level, index: self.tiles.get((level, index)))
        self.head: Head = EMPTY_HEAD
        for number in range(count):
            self.append(claimed(number, **({"role_id": f"role_{seed}"} if seed else {})))

    def append(self, wire: bytes) -> Record:
        timestamp = START + len(self.records) * 1_000_003
        record, leaf = chained(self.head, "1.0.1001", "1.0.2", timestamp, wire)
        self.records.append(record)
        self.head = Head(record.sequence, record.timestamp, record.running_hash)
        for level, index, data in self.tree.append([leaf_hash(leaf)]):
            self.tiles[level, index] = data
        return record

    def previous(self, sequence: int) -> bytes:
        return self.records[sequence - 2].running_hash if sequence > 1 else GENESIS

    def checkpoint(self, size: int | None = None, origin: str = ORIGIN) -> Checkpoint:
        size = self.tree.size if size is None else size
        return Checkpoint(origin, size, self.tree.root(size))

    def note(
        self,
        *signers: Signer,
        size: int | None = None,
        origin: str = ORIGIN,
        witnesses: list[Signer] | None = None,
    ) -> Note:
        note = sign_checkpoint(self.checkpoint(size, origin), signers or [SIGNER])
        lines = (cosign(witness, note.text, 1_778_177_800) for witness in witnesses or [])
        return Note(note.text, (*note.signatures, *lines))

    def proof(self, sequence: int, note: Note | None = None) -> LogProof:
        return prove(self.tree, sequence, (note or self.note()).encode())

    def receipt(self, sequence: int, note: Note | None = None, **options: Any) -> dict[str, Any]:
        options = {"base_url": "https://redkey.example", "signers": [SIGNER], **options}
        record = self.records[sequence - 1]
        return build_receipt(record, self.previous(sequence), self.proof(sequence, note), **options)
