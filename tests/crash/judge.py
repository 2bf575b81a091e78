"""The judge: opens a data directory after a crash with the real store, and says whether it is what it must be.

It must be exactly what the first k units of the script make, where k is at least what was acknowledged and at most
one more: nothing acknowledged is missing, nothing is there by half, nothing is there that nobody wrote. What k
units make is known from an undisturbed run, held against the memory store and against a checker that shares no code
with the store. Any refusal to open is wrong: a crash is not a reason to refuse.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from redkey.errors import RedKeyError
from redkey.ledger.ports import Content, Reader, SequencedStore
from redkey.stores.memory import MemoryStore
from redkey.stores.sqlite import SqliteStore
from tests.conformance.stores.checker import check_topic
from tests.crash.script import BODIES, ONE, TWO, UNITS, ScriptClock, play, reached

# What does not depend on when and by which process a unit was played, table by table.
_SHAPE = (
    "SELECT name, value FROM setting ORDER BY name",
    "SELECT number, id FROM topic ORDER BY number",
    "SELECT position, payer, subjects, wire FROM record ORDER BY position",
    "SELECT subject, position FROM event ORDER BY subject, position",
    "SELECT topic, level, number FROM tile ORDER BY topic, level, number",
    "SELECT topic, size, note FROM checkpoint ORDER BY topic, size",
    "SELECT number, topic, kind, key, body, listed, position FROM row ORDER BY number",
    "SELECT kind, key FROM row WHERE listed <> '' ORDER BY topic, kind, listed, position, key",
    "SELECT number, topic, sha256, bytes, pinned, erased, data FROM content ORDER BY number",
    "SELECT topic, name, amount FROM counter ORDER BY topic, name",
)
# The rest: times, and the hashes over them.
_TIMES = (
    "SELECT timestamp, running_hash FROM record ORDER BY position",
    "SELECT hashes FROM tile ORDER BY topic, level, number",
)


class Wrong(AssertionError):
    """A data directory is not what it must be."""


class Prefix(msgspec.Struct, frozen=True):
    """What so many units of the script make."""

    shape: bytes
    bodies: tuple[tuple[str, Content], ...]
    # Bytes of erased bodies: enough of each to be sure, little enough to lie in one page.
    gone: tuple[bytes, ...]
    # Tree sizes of the last checkpoints, by topic.
    checkpoints: dict[str, int]


@cache
def prefixes() -> Sequence[Prefix]:
    """What 0, 1, 2 ... units of the script make."""
    with TemporaryDirectory(prefix="redkey-reference-") as directory:
        clock, model = ScriptClock(), ScriptClock()
        memory = MemoryStore(model)
        with SqliteStore(directory, clock) as store:
            made = [_prefix(store, memory, ())]
            for number in range(1, len(UNITS) + 1):
                play(store, clock, number)
                play(memory, model, number)
                _compare(store, memory)
                made.append(_prefix(store, memory, made))
    return made


def _prefix(store: SqliteStore, memory: MemoryStore, before: Sequence[Prefix]) -> Prefix:
    bodies = tuple((topic, item) for topic in (ONE, TWO) for item in BODIES if memory.content(topic, item.sha256))
    ever = {item.sha256 for one in before for _, item in one.bodies}
    there = {item.sha256 for _, item in bodies}
    gone = tuple(item.data[:32] for item in BODIES if item.sha256 in ever - there)
    sizes = {topic: memory.checkpoints(topic)[0][0] for topic in (ONE, TWO) if memory.checkpoints(topic)}
    return Prefix(_dump(store)[0], bodies, gone, sizes)


def _compare(store: SequencedStore, memory: SequencedStore) -> None:
    """The two stores agree on everything that their port shows."""
    assert store.topics() == memory.topics()
    for topic in store.topics():
        assert check_topic(store, topic) == check_topic(memory, topic)
        for ask in _questions(topic):
            assert ask(store) == ask(memory)


def _questions(topic: str) -> Iterator[object]:
    yield lambda reader: [list(reader.rows(topic, kind)) for kind in ("task", "agent")]
    yield lambda reader: [list(reader.rows(topic, "task", listed)) for listed in ("open", "all")]
    yield lambda reader: [reader.content(topic, item.sha256) for item in BODIES]
    yield lambda reader: list(reader.counters(topic))
    yield lambda reader: list(reader.checkpoints(topic, 99))
    yield lambda reader: [list(reader.events(topic, f"agt_{number}")) for number in (1, 2, 3)]
    yield lambda reader: reader.setting("log_id")


def _dump(store: SqliteStore) -> tuple[bytes, bytes]:
    """Digests of everything in the tables: without what depends on time, and of that."""
    shape, times = (
        msgspec.msgpack.encode([store._fetch(sql, ()) for sql in statements]) for statements in (_SHAPE, _TIMES)
    )
    return blake2b(shape, digest_size=16).digest(), blake2b(times, digest_size=16).digest()


class Ack(msgspec.Struct, frozen=True):
    """What the run said when a unit was durable: its number, and the running hash of each topic it had then."""

    unit: int
    heads: dict[str, tuple[int, str]]


class Judge:
    """Judges data directories; remembers the databases it has looked through, so that the next one costs less."""

    def __init__(self) -> None:
        # Databases that the checker has found right, by what is in them: how many units, and their heads.
        self._known: dict[tuple[bytes, bytes], int] = {}

    def judge(self, directory: Path, acks: Sequence[Ack], *, go_on: bool = False, to_the_end: bool = False) -> int:
        """How many units the directory holds; Wrong when it is not what it must be.

        The store must then take the next unit, or all that are left, as if nothing had been.
        """
        clock = ScriptClock()
        try:
            store = SqliteStore(directory, clock)
        except RedKeyError as error:
            raise Wrong(f"does not open: {error.message} [{error.code}]") from error
        with store:
            units = self._check(store, directory, acks)
            _check_gone(directory / "redkey.db-wal", prefixes()[units].gone)
            after = len(UNITS) if to_the_end else min(units + go_on, len(UNITS))
            for number in range(units + 1, after + 1):
                play(store, clock, number)
            if after > units:
                self._check_tables(store, after)
        # Only now: whoever opens and closes a database that SQLite has open takes away its locks.
        _check_gone(directory / "redkey.db", prefixes()[after].gone)
        return units

    def _check(self, store: SqliteStore, directory: Path, acks: Sequence[Ack]) -> int:
        units = reached(store)
        acked = acks[-1].unit if acks else 0
        if not acked <= units <= acked + 1:
            raise Wrong(f"holds {units} units, {acked} were acknowledged")
        self._check_tables(store, units)
        for topic, (sequence, running_hash) in (acks[-1].heads if acks else {}).items():
            found = store.read(topic, sequence - 1, 1)
            if not found or found[0].running_hash.hex() != running_hash:
                raise Wrong(f"record {sequence} of {topic} is not the one that was acknowledged")
        self._check_files(store, directory, prefixes()[units], prefixes()[acked])
        return units

    def _check_tables(self, store: SqliteStore, units: int) -> None:
        dump = _dump(store)
        if self._known.get(dump) == units:
            return
        if dump[0] != prefixes()[units].shape:
            raise Wrong(f"the tables are not what {units} units make")
        for topic in store.topics():
            try:
                check_topic(store, topic)
            except AssertionError as error:
                raise Wrong(f"topic {topic}: {error}") from error
        self._known[dump] = units

    def _check_files(self, store: SqliteStore, directory: Path, made: Prefix, acked: Prefix) -> None:
        named = set()
        for topic, item in made.bodies:
            try:
                found = store.content(topic, item.sha256)
            except RedKeyError as error:
                raise Wrong(error.message) from error
            if found != item:
                raise Wrong(f"content {item.sha256} of {topic} is not there")
            named.add((topic, item.sha256))
        for folder, _, files in os.walk(directory / "content"):
            for file in files:
                if (Path(folder).name, file) not in named:
                    raise Wrong(f"{Path(folder).name}/{file} is left behind")
        for topic, size in acked.checkpoints.items():
            if store.kept_checkpoints.size(topic) < size:
                raise Wrong(f"the checkpoint of {topic} kept outside is behind {size}, which was acknowledged")


def _check_gone(path: Path, gone: Sequence[bytes]) -> None:
    """No bytes of an erased body are in this file; files of content are checked by their names."""
    data = path.read_bytes() if gone else b""
    for mark in gone:
        if mark in data:
            raise Wrong(f"{path.name} still holds bytes of an erased body")


def heads(reader: Reader) -> dict[str, tuple[int, str]]:
    """The head of every topic, as an acknowledgement tells it."""
    found = {topic: reader.head(topic) for topic in reader.topics()}
    return {topic: (head.sequence, head.running_hash.hex()) for topic, head in found.items()}
