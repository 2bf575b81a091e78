"""A checker never seen to fail proves nothing: each bug planted here is caught by the suite that should catch it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import RedKeyError, StoreRefused
from redkey.ledger import running_hash, tail
from redkey.ledger.clock import LedgerClock
from redkey.ledger.record import Head
from redkey.stores.sqlite import SqliteStore, connection
from redkey.stores.sqlite.content_files import ContentFiles
from redkey.stores.sqlite.writer import Writer
from tests.conformance.stores.cases import SequencedStoreCases
from tests.conformance.stores.harness import Maker

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_commit(patch: pytest.MonkeyPatch) -> None:
    """The block ends, and the commit comes with the next unit."""
    run, begin = Writer.run, Writer.begin

    def late_run(self: Writer, sql: str, parameters: Sequence[Any]) -> None:
        if sql != "COMMIT":
            run(self, sql, parameters)

    def late_begin(self: Writer) -> object:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        return begin(self)

    patch.setattr(Writer, "run", late_run)
    patch.setattr(Writer, "begin", late_begin)


def sequence_gap(patch: pytest.MonkeyPatch) -> None:
    """One number in fifty is left out."""
    real = tail.chain

    def skipping(head: Head, *arguments: Any) -> Any:
        if (head.sequence + len(arguments[-1])) // 50 > head.sequence // 50:
            head = Head(head.sequence + 1, head.timestamp, head.running_hash)
        return real(head, *arguments)

    patch.setattr(tail, "chain", skipping)


def clock_going_back(patch: pytest.MonkeyPatch) -> None:
    """Records get the time on the wall."""
    patch.setattr(LedgerClock, "after", lambda self, timestamp: self._clock.wall())


def clock_that_only_never_repeats(patch: pytest.MonkeyPatch) -> None:
    """The usual shortcut: the later of wall time and the last record. It freezes when the wall clock steps back."""
    patch.setattr(LedgerClock, "after", lambda self, timestamp: max(self._clock.wall(), timestamp + 1))


def hash_over_other_bytes(patch: pytest.MonkeyPatch) -> None:
    """The running hash forgets who paid."""
    real = running_hash.preimage

    def without_payer(previous: bytes, payer: str, *arguments: Any) -> bytes:
        return real(previous, "1.0.2", *arguments)

    patch.setattr(running_hash, "preimage", without_payer)


def tail_kept_after_a_failed_unit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tail.Tails, "forget", lambda self: None)


def others_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    """Tails are taken to be current without looking."""
    patch.setattr(Writer, "_see_others", lambda self: self._tails.begin(others_wrote=False))


def file_left_when_erased(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ContentFiles, "_delete", lambda self, topic, sha256: None)


def rolled_back_only_in_name(patch: pytest.MonkeyPatch) -> None:
    """A unit that raised is committed all the same."""
    patch.setattr(Writer, "roll_back", Writer.commit)


CAUGHT: list[tuple[Plant, str]] = [
    (acknowledge_before_commit, "test_when_the_block_has_ended_the_unit_is_there_for_a_store_opened_now"),
    (sequence_gap, "test_records_are_numbered_without_gap_and_hashed_as_hedera_does"),
    (clock_going_back, "test_timestamps_rise_over_a_clock_that_stands_still_steps_back_and_forward"),
    (
        clock_that_only_never_repeats,
        "test_time_goes_on_after_the_clock_has_stepped_back_while_the_store_was_closed",
    ),
    (hash_over_other_bytes, "test_the_payer_is_the_local_one_unless_told"),
    (tail_kept_after_a_failed_unit, "test_a_unit_that_raised_leaves_no_trace_in_the_next"),
    (others_not_looked_for, "test_two_stores_take_turns_and_go_on_from_each_other"),
    (rolled_back_only_in_name, "test_a_unit_that_raises_leaves_nothing"),
]


@pytest.mark.parametrize(("plant", "case"), CAUGHT, ids=[plant.__name__ for plant, _ in CAUGHT])
def test_the_conformance_suite_catches(
    sqlite_maker: Maker, monkeypatch: pytest.MonkeyPatch, plant: Plant, case: str
) -> None:
    with monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises((AssertionError, RedKeyError, sqlite3.IntegrityError)):
            getattr(SequencedStoreCases(), case)(sqlite_maker)


def test_an_erased_file_that_stays_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.stores.sqlite.test_erasure import test_the_bytes_are_gone_when_the_unit_has_ended as case

    with monkeypatch.context() as patch:
        file_left_when_erased(patch)
        with pytest.raises(AssertionError):
            case(tmp_path / "erased", 200_000)


def test_an_unsynced_store_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.SETTINGS, "synchronous", "OFF")
    with pytest.raises(StoreRefused) as refused:
        SqliteStore(tmp_path)
    assert refused.value.code == "unsafe_settings"


# Without and with the planted bug; the bug also silences the check that would refuse it.
APPENDING = """
import os, sys
from redkey.ledger.ports import Entry
from redkey.stores.sqlite import SqliteStore, connection
if sys.argv[2] == "planted":
    connection.SETTINGS["synchronous"] = "OFF"
    connection.check_settings = lambda connection: None
store = SqliteStore(sys.argv[1])
topic = store.create_topic()
os.write(1, b"opened\\n")
for number in range(5):
    with store.write(topic) as unit:
        unit.append(topic, [Entry(b"1", "wire_1")], number)
    os.write(1, b"acknowledged\\n")
store.close()
"""


def unsynced_acknowledgements(directory: Path, how: str) -> int:
    """How many acknowledgements came without a sync of the log since the one before."""
    trace = directory.with_suffix(".trace")
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fdatasync,fsync,write", sys.executable]
    subprocess.run([*command, "-c", APPENDING, str(directory), how], check=True, stdout=subprocess.DEVNULL, timeout=120)
    unsynced, synced, acknowledged = 0, False, 0
    for line in trace.read_text(errors="replace").splitlines():
        if "sync(" in line and "redkey.db-wal" in line and line.endswith("= 0"):
            synced = True
        elif "write(1" in line and "opened" in line:
            synced = False
        elif "write(1" in line and "acknowledged" in line:
            unsynced, synced, acknowledged = unsynced + (not synced), False, acknowledged + 1
    assert acknowledged == 5
    return unsynced


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_the_system_calls_tell_an_unsynced_acknowledgement(tmp_path: Path) -> None:
    assert unsynced_acknowledgements(tmp_path / "good", "as it is") == 0
    assert unsynced_acknowledgements(tmp_path / "bad", "planted") == 5
