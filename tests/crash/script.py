"""The scripted append run: the units that every crash proof plays, each touching another part of the store.

The script is the same every time, so a store after any crash must be exactly what its first k units make. Every
unit states its number in a setting; whoever opens the store afterwards reads there how far it came, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from redkey.ledger.content import body, structure
from redkey.ledger.ports import Reader, Row, SequencedStore
from redkey.ledger.record import NANOSECONDS
from tests.conformance.stores.harness import NOON, entries

ONE, TWO = "1.0.1001", "1.0.1002"
REACHED = "unit"
# Up to here bodies are kept in the database, above it as files.
_INLINE = 16 * 1024


class ScriptClock:
    """Wall and monotonic time pass together, a second a unit: what a unit records does not depend on the machine."""

    def __init__(self) -> None:
        self.seconds = 0

    def wall(self) -> int:
        return NOON + self.seconds * NANOSECONDS

    def monotonic(self) -> int:
        return self.seconds * NANOSECONDS


def _bytes(name: str, size: int) -> bytes:
    """Bytes that nothing else holds."""
    block = sha256(name.encode()).digest()
    return (block * (size // len(block) + 1))[:size]


SMALL, SMALL_ERASED = body(_bytes("small", 900)), body(_bytes("small, erased", 3000))
RECEIVED = body(_bytes("received", 2 * _INLINE))
LARGE, LARGE_ERASED = body(_bytes("large", _INLINE + 700)), body(_bytes("large, erased", _INLINE + 1))
PLAN = structure({"tasks": [], "of": "the script"})
BODIES = (SMALL, SMALL_ERASED, LARGE, LARGE_ERASED, RECEIVED, PLAN)


def checkpoint(topic: str, size: int) -> bytes:
    return f"redkey/script/{topic}/e1\n{size}\nroot of {size}\n\n— redkey/script/{topic}/e1 signature\n".encode()


class Group:
    """Units of several topics that are committed together, used as if they were one."""

    def __init__(self, store: SequencedStore) -> None:
        self._store = store
        self.create_topic = store.create_topic

    def setting(self, name: str) -> str | None:
        with self._store.write_store() as unit:
            return unit.setting(name)

    def put_setting(self, name: str, value: str) -> None:
        with self._store.write_store() as unit:
            unit.put_setting(name, value)

    def __getattr__(self, name: str) -> Any:
        def call(topic: str, *arguments: Any) -> Any:
            with self._store.write(topic) as unit:
                return getattr(unit, name)(topic, *arguments)

        return call


def _append(unit: Group, topic: str, count: int, *subjects: str) -> None:
    head = unit.head(topic).sequence
    unit.append(topic, entries(head + 1, count, *subjects), head)


def _sign(unit: Group, *topics: str) -> None:
    for topic in topics:
        size = unit.head(topic).sequence
        unit.put_checkpoint(topic, size, checkpoint(topic, size))


def _first_topic(unit: Group) -> None:
    unit.create_topic()
    unit.put_setting("log_id", "script")
    _append(unit, ONE, 2, "agt_1")


def _second_topic(unit: Group) -> None:
    unit.create_topic()
    _append(unit, ONE, 1)
    _append(unit, TWO, 2, "agt_1", "agt_2")
    unit.put_rows(ONE, [Row("task", "task_1", b'{"state":"open"}', "open", 1)])


def _small_bodies(unit: Group) -> None:
    unit.put_content(ONE, [SMALL, SMALL_ERASED, PLAN])
    _append(unit, ONE, 1, "task_1")


def _large_body(unit: Group) -> None:
    unit.put_content(ONE, [LARGE])
    _append(unit, ONE, 1, "task_1")


def _first_checkpoint(unit: Group) -> None:
    _append(unit, ONE, 1)
    _sign(unit, ONE)


def _bodies_in_both(unit: Group) -> None:
    unit.put_content(TWO, [LARGE, LARGE_ERASED])
    unit.put_content(ONE, [LARGE_ERASED])
    _append(unit, TWO, 1, "task_2")


def _rows_and_counters(unit: Group) -> None:
    unit.put_rows(ONE, [Row("task", "task_1", b'{"state":"done"}'), Row("task", "task_2", b"{}", "open", 2)])
    unit.count(ONE, [("tasks", 2), ("claims", 1)])
    unit.count(TWO, [("tasks", 1)])
    _append(unit, ONE, 2, "task_1", "agt_2")


def _erase_small(unit: Group) -> None:
    assert unit.erase_content(ONE, SMALL_ERASED.sha256)
    _append(unit, ONE, 1)


def _both_checkpoints(unit: Group) -> None:
    _append(unit, TWO, 1)
    _sign(unit, ONE, TWO)


def _erase_large(unit: Group) -> None:
    assert unit.erase_content(TWO, LARGE_ERASED.sha256)
    assert unit.erase_content(ONE, LARGE_ERASED.sha256)
    _append(unit, TWO, 1)


def _whole_block(unit: Group) -> None:
    """Enough records for a Merkle tile and a block of the event index."""
    _append(unit, TWO, 256, "agt_3")


def _rows_deleted(unit: Group) -> None:
    unit.delete_rows(ONE, "task", ["task_1"])
    unit.count(ONE, [("tasks", -1)])
    _append(unit, ONE, 1)


def _rows_only(unit: Group) -> None:
    unit.put_rows(TWO, [Row("agent", f"agt_{number}", b'{"seen":true}', "all", number) for number in range(3)])


def _erased_comes_back(unit: Group) -> None:
    unit.put_content(TWO, [LARGE_ERASED])
    _append(unit, TWO, 1)


def _received(unit: Group) -> None:
    """A body that came in before the unit, as a file of its own."""
    _append(unit, ONE, 1)


def _last_checkpoint(unit: Group) -> None:
    _append(unit, ONE, 1)
    _append(unit, TWO, 1)
    _sign(unit, TWO, ONE)


def _last_record(unit: Group) -> None:
    _append(unit, ONE, 1, "agt_1")


UNITS: tuple[Callable[[Group], None], ...] = (
    _first_topic,
    _second_topic,
    _small_bodies,
    _large_body,
    _first_checkpoint,
    _bodies_in_both,
    _rows_and_counters,
    _erase_small,
    _both_checkpoints,
    _erase_large,
    _rows_only,
    _whole_block,
    _rows_deleted,
    _erased_comes_back,
    _received,
    _last_checkpoint,
    _last_record,
)
# After this many units the run closes the store and opens it again.
REOPENED_AFTER = (9, 13)


def reached(reader: Reader) -> int:
    """How many units of the script a store holds."""
    return int(reader.setting(REACHED) or 0)


def play(store: SequencedStore, clock: ScriptClock, number: int) -> None:
    """Play the unit of this number (from 1)."""
    clock.seconds = number
    if UNITS[number - 1] is _received:
        _receive(store, number)
        return
    with store.together():
        _begin(Group(store), number)


def _receive(store: SequencedStore, number: int) -> None:
    upload = store.upload()
    try:
        for first in range(0, len(RECEIVED.data), 10_000):
            upload.write(RECEIVED.data[first : first + 10_000])
        upload.finish()
        with store.together():
            unit = Group(store)
            _begin(unit, number)
            unit.adopt(ONE, upload)
    finally:
        upload.discard()


def _begin(unit: Group, number: int) -> None:
    assert reached(unit) == number - 1, f"unit {number} follows unit {reached(unit)}"
    unit.put_setting(REACHED, str(number))
    UNITS[number - 1](unit)
