"""The store ports: what the ledger needs from a store.

A unit of work belongs to one topic: it locks the topic, reads what other processes wrote, decides, appends and
commits, so no decision is made on a stale world. Acts on the whole store (settings) have a unit of their own, and a
topic is created by one insert. Adapters live in `redkey.stores`; the conformance suite in `tests/conformance/stores`
runs against every adapter.

All calls are synchronous. A store says where its units run: `inline` on the event loop (SQLite, memory: a commit takes
less time than a change of threads), else on writer threads (a network). Reads see committed state only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

from redkey.ledger.prefetch import Prefetch
from redkey.ledger.record import LOCAL_PAYER, Head, Record
from redkey.ledger.tiles import TileTree


class Clock(Protocol):
    """Wall time as whole nanoseconds since the epoch, and a monotonic time that never steps."""

    def wall(self) -> int: ...

    def monotonic(self) -> int: ...


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A wire to append: its canonical bytes, its id, and the ids of its subjects (the event index)."""

    wire: bytes
    wire_id: str
    subjects: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True, gc=False):
    """One entity of the read model: canonical JSON under (kind, key), listed at `position` of one list."""

    kind: str
    key: str
    body: bytes
    listed: str = ""
    position: int = 0


class Content(msgspec.Struct, frozen=True, gc=False):
    """Bytes outside the ledger, named on it by hash. Pinned content cannot be erased: replay needs it."""

    sha256: str
    data: bytes
    pinned: bool = False


class ContentFacts(msgspec.Struct, frozen=True, gc=False):
    """What is known about content without reading it."""

    bytes: int
    pinned: bool


class Doubt(msgspec.Struct, frozen=True, gc=False):
    """A commit whose outcome is unknown: the head that the unit leaves if it was committed."""

    topic: str
    sequence: int
    running_hash: bytes
    # The store's own name of the unit: a unit without records leaves the head where it was.
    unit: str = ""


# When erased bytes are gone from the files of a store: with the commit ("now"), or when it next cleans up behind itself
# and its backups expire ("later"); empty when there was nothing to erase.
Erasure = Literal["", "now", "later"]


class Upload(Protocol):
    """A body that is being received, staged until a unit adopts it; it may be larger than memory."""

    @property
    def size(self) -> int: ...

    @property
    def sha256(self) -> str: ...

    def write(self, chunk: bytes) -> None:
        """Append the next bytes."""

    def finish(self) -> str:
        """End the upload and return the hash of its bytes."""

    def discard(self) -> None:
        """Delete the body, unless a unit has adopted it. A second call does nothing."""


class Reader(Protocol):
    """Reads of a store, at its last commit, or inside a unit with what the unit has added.

    A topic that does not exist reads as an empty one.
    """

    def topics(self) -> Sequence[str]: ...

    def head(self, topic: str) -> Head: ...

    def read(self, topic: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        """Return the records with a sequence above `after`, in order."""

    def read_back(
        self, topic: str, before: int, limit: int = 1000, *, after: int = 0, containing: bytes = b""
    ) -> Sequence[Record]:
        """Return the records below `before` and above `after`, newest first; with `containing`, only those wires."""

    def find(self, topic: str, wire_id: str) -> Record | None:
        """Return the first record with this wire id."""

    def wire_ids(self, topic: str, prefix: str, limit: int = 10) -> Sequence[str]:
        """Return the first wire ids that begin with `prefix`, in order, each once."""

    def events(
        self, topic: str, subject: str, after: int = 0, limit: int = 500, *, newest_first: bool = False
    ) -> Sequence[Record]:
        """Return the records with this subject, in order above `after`, or newest first below it (0: from the head)."""

    def row(self, topic: str, kind: str, key: str) -> Row | None: ...

    def rows(
        self, topic: str, kind: str, listed: str | None = None, after: tuple[int, str] = (0, ""), limit: int = 500
    ) -> Sequence[Row]:
        """Return the rows of a kind after `after`: by key, or those of one list by (position, key)."""

    def count_rows(self, topic: str, kind: str, listed: str) -> int:
        """Return how many rows of a kind are in one list."""

    def content(self, topic: str, sha256: str) -> Content | None: ...

    def content_facts(self, topic: str, sha256: str) -> ContentFacts | None:
        """Return what is known about content without reading it; None if there is none."""

    def content_chunks(self, topic: str, sha256: str) -> Iterator[bytes]:
        """Yield content in pieces; raise StoreFailed before the last piece if it is damaged."""

    def counters(self, topic: str, prefix: str = "") -> Sequence[tuple[str, int]]:
        """Return the counters whose name begins with `prefix`, by name."""

    def tile(self, topic: str, level: int, index: int) -> bytes | None:
        """Return a complete Merkle tile: 256 hashes of 32 bytes."""

    def tree(self, topic: str) -> TileTree:
        """Return the Merkle tree over the topic's records: a copy, which does not grow with the topic."""

    def checkpoints(self, topic: str, limit: int = 1) -> Sequence[tuple[int, bytes]]:
        """Return the signed checkpoints as (tree size, signed note), largest first."""

    def setting(self, name: str) -> str | None:
        """Return a setting of the whole store, such as its log id, or a fact of any topic, by its name."""


class StoreUnit(Reader, Protocol):
    """A unit on the whole store, for what belongs to no topic."""

    def put_setting(self, name: str, value: str) -> None: ...


class Unit(Reader, Protocol):
    """One unit of work on one topic: everything in it becomes durable together, or nothing does.

    It reads every topic and writes its own; StoreMisused for another one.
    """

    @property
    def others(self) -> int:
        """Return a number that changes when another process has committed to the topic."""

    def prefetch(self, topic: str, wanted: Prefetch) -> None:
        """Read now, together, what this unit will ask for; nothing where a read costs no round trip."""

    def next_timestamp(self, topic: str) -> int:
        """Return the consensus timestamp of the next record, by the store's clock: the `now` of decisions."""

    def append(
        self,
        topic: str,
        entries: Sequence[Entry],
        expected: int,
        payer: str = LOCAL_PAYER,
        timestamps: Sequence[int] | None = None,
    ) -> Sequence[Record]:
        """Append after sequence `expected`, which must be the head's: an assertion, not a retry loop.

        All entries are appended, or none is. `timestamps` are given only to copy records of another ledger.
        """

    def put_rows(self, topic: str, rows: Iterable[Row]) -> None: ...

    def delete_rows(self, topic: str, kind: str, keys: Iterable[str]) -> None: ...

    def put_content(self, topic: str, items: Iterable[Content]) -> None:
        """Store content; existing content stays, and becomes pinned if either of the two is."""

    def adopt(self, topic: str, upload: Upload) -> None:
        """Store a finished upload of this store as content, by its name: no bytes are moved."""

    def erase_content(self, topic: str, sha256: str) -> Erasure:
        """Erase the bytes: once the unit is durable nobody can read them; refuse pinned content.

        Return when they are gone from the files as well, or nothing if there are none.
        """

    def count(self, topic: str, amounts: Iterable[tuple[str, int]]) -> None:
        """Add amounts to counters."""

    def put_checkpoint(self, topic: str, size: int, note: bytes) -> None:
        """Store a signed checkpoint, the largest also outside the database: a store behind it refuses to open."""

    def put_fact(self, topic: str, name: str, value: str) -> None:
        """Store a fact of the topic, such as the hash of a key. Everyone finds it by its name, with `setting`."""

    def put_due(self, topic: str, at: int) -> None:
        """Store when something is due next in the topic; 0 for never. An earlier time that is still to come stays."""


class SequencedStore(Reader, Protocol):
    """A store whose writers take turns."""

    # The database with its version, such as "SQLite 3.40.1".
    engine: str
    # Units run on the event loop; else on writer threads, different topics side by side.
    inline: bool

    def write(self, topic: str, *, wait: bool = True) -> AbstractContextManager[Unit]:
        """Lock a topic and open a unit; commit when the block ends, roll back when it raises.

        When the block ends, the unit is durable. CommitInDoubt if that is unknown; any other error means that nothing
        was recorded. Raise WriterBusy if the lock is not free within seconds; with `wait=False` at once, if another
        writer has the lock or waits for it.
        """

    def write_store(self, *, wait: bool = True) -> AbstractContextManager[StoreUnit]:
        """Open a unit on the whole store; ends as `write` does."""

    def create_topic(self, topic: str | None = None, *, fact: str = "", wait: bool = True) -> str:
        """Create the next local topic, or one with a name from another ledger.

        With `fact` the new topic gets this fact, whose value is the topic's name. If a topic has it already, return
        that one: of two callers with the same fact, both get the same topic.
        """

    def together(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Commit the units of this block together, with one sync; inline stores only. If one fails, all fail."""

    def hold(self) -> None:
        """Wait for the writer lock (call it in a thread) and keep it for the next unit; inline stores only."""

    def release(self) -> None:
        """Release a lock that `hold` took and no unit will use."""

    def resolve(self, doubt: Doubt) -> Literal["committed", "failed"]:
        """Return how a commit in doubt ended: wait for its lock, then look at the ledger. Call it in a thread."""

    def check_writable(self) -> None:
        """Raise why nothing can be written now: WriterBusy, StoreFull, StorePoisoned. Call it in a thread."""

    def upload(self) -> Upload:
        """Begin to receive a body, outside of any unit; the caller must discard the upload in the end."""

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Read the store as it is now, for reads that must agree: later commits are not seen in this block."""

    def known_head(self, topic: str) -> int:
        """Return the last sequence of a topic that this store has learned of, without waiting for a network.

        It includes every commit of this store. From the first call on the topic is watched for commits of others.
        """

    def look(self) -> None:
        """Look for commits of others to watched topics now, if the store does not listen for them by itself."""

    def subscribe(self, heard: Callable[[str, int], None]) -> Callable[[], None]:
        """Call `heard(topic, head)` when others have committed to a watched topic; return how to end that.

        None is lost: after a lost connection, heads are compared. A store that is not inline calls from a thread.
        """

    def due(self, now: int, limit: int) -> Sequence[str]:
        """Return topics in which something may be due at `now`, the earliest first. Takes no locks."""

    def follow(self, topic: str, after: int = 0) -> Iterator[Sequence[Record]]:
        """Yield batches of records above `after` as any process commits them; end when the store closes."""

    def close(self) -> None: ...
