"""kill -9 at file syscalls of a run of real commands: what was acknowledged is there, and `redkey fsck` is content.

The commands go through the coordinator: tasks, claims, a plan, bodies, an erasure, keys rotated, checkpoints.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redkey.errors import StoreRefused
from redkey.services.fsck.report import Report
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from tests.crash.append_run import DATA, acknowledged
from tests.crash.proofs import KILLED
from tests.crash.recording import History, record_run, spread
from tests.crash.tracing import KILL, Tracer
from tests.harness.workshop import checked

SHARES = 4
# Every other syscall or so in the ordinary size; the store's own script is killed at each of its own.
POINTS = 100_000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 160
# So many kills of a share are also looked at by the command itself.
BY_COMMAND = 2
# There is no database yet, or an empty one.
NOTHING_YET = {"no_store", "not_redkey"}


@pytest.fixture(scope="module")
def commands(strace: None) -> History:
    return record_run(commands=True)


@pytest.fixture(scope="module")
def killer(strace: None) -> Iterator[Tracer]:
    with Tracer(KILL) as tracer:
        yield tracer


@pytest.mark.parametrize("share", range(SHARES))
def test_fsck_is_content_after_a_kill(
    commands: History, killer: Tracer, scratch: Path, tell: Callable[[str], None], share: int
) -> None:
    every = commands.points()
    chosen = spread(every, POINTS)[share::SHARES]
    for number, (name, at) in enumerate(chosen):
        base = scratch / "run"
        ended = killer.run(base, name, at, commands=True)
        assert ended.code == KILLED, f"{name} {at} was not reached: {ended.code}"
        told = f"killed at {name} {at}"
        report = fsck(base)
        assert report is None or report.clean, (told, report.faults)
        check_acknowledged(base, told)
        if number % (len(chosen) // BY_COMMAND) == 0:
            check_by_command(base / DATA, nothing_yet=report is None)
        if number % 10 == 0:
            check_that_it_goes_on(base / DATA)
        shutil.rmtree(base)
    tell(f"{len(chosen)} kills of {len(every)} in a run of real commands, fsck content after each, share {share + 1}")


def fsck(base: Path) -> Report | None:
    """What fsck finds; None when nothing was there yet, and nothing was acknowledged."""
    try:
        return checked(base / DATA)
    except StoreRefused as refused:
        if refused.code in NOTHING_YET and not acknowledged(base):
            return None
        raise


def check_acknowledged(base: Path, told: str) -> None:
    acks = acknowledged(base)
    with SqliteStore(base / DATA) as store:
        for topic, (sequence, running_hash) in (acks[-1].heads if acks else {}).items():
            found = store.read(topic, sequence - 1, 1)
            assert found, f"{told}: record {sequence} was acknowledged and is not there"
            assert found[0].running_hash.hex() == running_hash, told


def check_by_command(directory: Path, *, nothing_yet: bool) -> None:
    command = [sys.executable, "-m", "redkey", "fsck", str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    # Whoever looks at what was acknowledged opens the store: an empty one is a sound one by now.
    assert ended.returncode == 0, (nothing_yet, ended.stdout, ended.stderr)
    assert "clean" in ended.stdout


def check_that_it_goes_on(directory: Path) -> None:
    """The next process signs what is there, with a new key when the old one was this run's own."""
    with SqliteStore(directory) as store, store.write_store() as unit:
        unit.put_setting("signers", "{}")
    with SqliteStore(directory) as store:
        open_signing(store).sign()
    report = checked(directory)
    assert report.clean, report.faults
