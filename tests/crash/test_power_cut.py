"""The power fails at any moment, and the disk forgets, tears and reorders what was not synced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.disk import KEEP_ALL, Disk
from tests.crash.judge import Judge
from tests.crash.power_cut import Examiner
from tests.crash.recording import History, record_restarts, spread
from tests.crash.script import UNITS
from tests.crash.tracing import KILL, Call, Strike

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
# At least 20,000 disk states in all, a million at the large size.
SHARES, STATES = 8, 120_000 if LONG else 2100
POINTS, STATES_AFTER_RESTART = (400, 400) if LONG else (32, 60)
# At least so many in each share of the restarts.
AFTER_RESTARTS = 800
EIO = Strike("error=EIO")

Count = Callable[[str, int], None]


def test_the_crash_disk_keeps_what_the_real_disk_holds_when_nothing_is_lost(recorded: History) -> None:
    disk = Disk(recorded.base)
    for _ in disk.follow(recorded.runs[0]):
        pass
    assert [ack.unit for ack in disk.acks] == list(range(len(UNITS) + 1))
    assert disk.image(KEEP_ALL).files == recorded.files


@pytest.mark.parametrize("share", range(SHARES))
def test_what_was_acknowledged_is_there_after_a_power_cut(
    recorded: History, judge: Judge, scratch: Path, count: Count, share: int
) -> None:
    states = Examiner(recorded, judge, scratch, share, SHARES).examine(STATES)
    assert states >= STATES
    count("disk states of a power cut", states)


def _makes_names_or_syncs(call: Call) -> bool:
    return call.name != "pwrite64" and not (call.name == "openat" and "O_CREAT" not in " ".join(call.rest))


def _syncs(call: Call) -> bool:
    return call.name in ("fsync", "fdatasync")


@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize(("strike", "where"), [(KILL, _makes_names_or_syncs), (EIO, _syncs)], ids=["killed", "failed"])
def test_what_a_process_left_is_made_durable_by_the_next_one(
    recorded: History,
    judge: Judge,
    scratch: Path,
    count: Count,
    share: int,
    strike: Strike,
    where: Callable[[Call], bool],
) -> None:
    """One process is killed or meets a failed fsync, another goes on, and then the power fails."""
    every = recorded.points(where)
    chosen = spread(every, POINTS)[share::2]
    states = 0
    for number, history in enumerate(record_restarts(strike, chosen)):
        examiner = Examiner(history, judge, scratch, share=number % 7, shares=7)
        states += examiner.examine(STATES_AFTER_RESTART, systematic=False)
    assert states >= AFTER_RESTARTS
    count("disk states of a power cut", states)
