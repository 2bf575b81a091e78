"""The end of one topic, where records are created: its head, its clock and its Merkle tree.

Every store creates records here, so the rules of HCS have one home: sequences without gaps, strictly increasing
timestamps, messages of 1 to 1,024 bytes, the running hash, and the leaf of the tree over the same bytes. A refused
message changes nothing. New records count only when the store has committed them; after a failed unit its tails are
discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from redkey.errors import AppendRefused
from redkey.ledger.clock import LedgerClock
from redkey.ledger.ports import Clock, Entry, Reader
from redkey.ledger.record import LOCAL_PAYER, MESSAGE_LIMIT, Head, Record, entity
from redkey.ledger.running_hash import GENESIS, chain, record_preimage
from redkey.ledger.tiles import TILE_WIDTH, Tile, TileTree

# Timestamps are stored and hashed as signed 64-bit integers.
_LATEST = 2**63 - 1
_PAGE = 1000
# Tails kept between units, about 70 KiB each at most: the incomplete tiles of the tree.
TAILS = 512


class Tail:
    """Creates the next records of one topic."""

    __slots__ = ("_clock", "_next", "head", "topic", "tree")

    def __init__(self, topic: str, clock: LedgerClock, head: Head, tree: TileTree) -> None:
        self.topic = topic
        self.head = head
        self.tree = tree
        self._clock = clock
        self._next: int | None = None

    def begin(self) -> None:
        """Begin a unit: its time is taken when it is first needed."""
        self._next = None

    def next_timestamp(self) -> int:
        """Return the timestamp of the next record; the same until a record uses it."""
        if self._next is None:
            self._next = self._clock.after(self.head.timestamp)
        return self._next

    def append(
        self, entries: Sequence[Entry], expected: int, payer: str, timestamps: Sequence[int] | None = None
    ) -> tuple[list[Record], list[Tile]]:
        """Append entries: return their records, and the tiles that they complete."""
        if expected != self.head.sequence:
            raise AppendRefused(
                f"topic {self.topic} is at sequence {self.head.sequence}, not {expected}", code="sequence_moved"
            )
        _check(entries)
        if payer != LOCAL_PAYER:
            check_entity(payer, "payer")
        if not entries:
            return [], []
        times = self._times(len(entries)) if timestamps is None else self._checked(timestamps, len(entries))
        records, leaves = chain(self.head, self.topic, payer, times, [entry.wire for entry in entries])
        self.head = head_of(records[-1])
        self._next = self.head.timestamp + 1
        return records, self.tree.append(leaves)

    def check_checkpoint(self, size: int, note: bytes) -> None:
        """Refuse a note that is not a checkpoint of this size, or a size beyond the topic's head."""
        if checkpoint_size(note) != size or not 0 <= size <= self.head.sequence:
            raise AppendRefused(
                f"the note is not a checkpoint of size {size}, or topic {self.topic} is only at {self.head.sequence}",
                code="checkpoint_refused",
            )

    def catch_up(self, records: Sequence[Record]) -> None:
        """Add the records that another writer committed after this tail's head."""
        if not records:
            return
        self.tree.append(leaf_hashes(self.head.running_hash, records))
        self.head = head_of(records[-1])

    def _times(self, count: int) -> range:
        first = self.next_timestamp()
        return range(first, first + count)

    def _checked(self, timestamps: Sequence[int], count: int) -> Sequence[int]:
        if len(timestamps) != count:
            raise AppendRefused(f"{count} messages came with {len(timestamps)} timestamps", code="timestamp_order")
        previous = self.head.timestamp
        for timestamp in timestamps:
            if not previous < timestamp <= _LATEST:
                raise AppendRefused(
                    f"timestamp {timestamp} does not follow {previous}; they must increase", code="timestamp_order"
                )
            previous = timestamp
        return timestamps


class Tails:
    """The tails of the topics written last: kept between units, updated when others have written."""

    __slots__ = ("_clock", "_current", "_kept", "_reader", "_stale")

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = LedgerClock(clock)
        self._kept: dict[str, Tail] = {}
        self._stale: set[str] = set()
        self._current: dict[str, Tail] = {}

    def begin(self, *, others_wrote: bool) -> None:
        """Begin a unit."""
        self._current.clear()
        if others_wrote:
            self._stale.update(self._kept)

    def forget(self) -> None:
        """Discard the tails of a failed unit."""
        self._current.clear()
        self._kept.clear()
        self._stale.clear()

    def of(self, topic: str) -> Tail:
        """Return the tail of a topic, as of this unit."""
        return self._current.get(topic) or self._join(topic)

    def _join(self, topic: str) -> Tail:
        tail = self._kept.pop(topic, None) or open_tail(self._reader, topic, self._clock)
        if topic in self._stale:
            self._stale.discard(topic)
            for batch in records_after(self._reader, topic, tail.head.sequence):
                tail.catch_up(batch)
        tail.begin()
        self._kept[topic] = self._current[topic] = tail
        if len(self._kept) > TAILS:
            del self._kept[next(iter(self._kept))]
        return tail


def _check(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if not 1 <= len(entry.wire) <= MESSAGE_LIMIT:
            raise AppendRefused(f"a message has 1 to {MESSAGE_LIMIT} bytes, not {len(entry.wire)}", code="message_size")
    # Stores look ids up by their text, and people read them: no control characters, no lone surrogates.
    if not "".join([text for entry in entries for text in (entry.wire_id, *entry.subjects)]).isprintable():
        raise AppendRefused("a wire id or subject is not printable text", code="subject_invalid")


def check_entity(text: str, what: str) -> None:
    """Refuse a topic or payer that is not `shard.realm.num`."""
    try:
        entity(text)
    except ValueError as error:
        raise AppendRefused(f"the {what} {text[:64]!r} is not shard.realm.num", code=f"{what}_invalid") from error


def open_tail(reader: Reader, topic: str, clock: Clock) -> Tail:
    """Load the tail of a topic from the store."""
    tree, head = open_tree(reader, topic)
    return Tail(topic, LedgerClock(clock), head, tree)


def open_tree(reader: Reader, topic: str) -> tuple[TileTree, Head]:
    """Rebuild the Merkle tree of a topic and its head, from tiles and the records after them."""
    size = reader.head(topic).sequence
    tiled = size - size % TILE_WIDTH
    before = reader.read(topic, tiled - 1, 1) if tiled else ()
    head = head_of(before[0]) if before else Head(0, 0, GENESIS)
    records = reader.read(topic, tiled, size - tiled) if size > tiled else ()
    leaves = list(leaf_hashes(head.running_hash, records))
    return TileTree(lambda level, index: reader.tile(topic, level, index), size, leaves), (
        head_of(records[-1]) if records else head
    )


def records_after(reader: Reader, topic: str, sequence: int) -> Iterator[Sequence[Record]]:
    """Yield all records above `sequence`, in batches."""
    while batch := reader.read(topic, sequence, _PAGE):
        yield batch
        sequence = batch[-1].sequence


def leaf_hashes(previous: bytes, records: Sequence[Record]) -> Iterator[bytes]:
    """Return the leaf hashes of records that follow one with the running hash `previous`."""
    for record in records:
        yield sha256(b"\x00" + record_preimage(previous, record)).digest()
        previous = record.running_hash


def checkpoint_size(note: bytes) -> int | None:
    """Return the tree size of a signed checkpoint, its second line; None if the text is not a checkpoint."""
    lines = note.split(b"\n", 2)
    return int(lines[1]) if len(lines) == 3 and lines[1].isdigit() and len(lines[1]) < 20 else None


def head_of(record: Record) -> Head:
    """Return the head of a topic that ends with this record."""
    return Head(record.sequence, record.timestamp, record.running_hash)
