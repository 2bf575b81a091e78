"""WAL checkpoints run only under the writer lock: in the store, the bus and the runner's memories.

SQLite before 3.51.3 can corrupt a database when a checkpoint and another writer meet (the WAL-reset bug). A write to
the database file itself is a checkpoint; each is held against the locks that the process has at that moment. When the
last connection closes, SQLite copies the log under its own exclusive lock on the file: then nobody else has it open.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.tracing import ROOT

_CALL = re.compile(r"^(\d+) +(\w+)\((\d+)<([^>]*)>(.*)$")
_BEGUN = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_EXCLUSIVE = "l_start=1073741826, l_len=510"

CASES = {
    "store": ("redkey.db", "redkey.lock"),
    "bus": ("bus.db", "bus.lock"),
    "memory": ("memory.sqlite", "memory.sqlite.lock"),
}


class Writes:
    """What one traced run wrote into its database, and under which locks."""

    def __init__(self, database: str, lock: str) -> None:
        self._database, self._lock = database, lock
        # Descriptors that hold the lock now; a process may have several on one file.
        self._holders: set[str] = set()
        self._alone = False
        self.under_lock = self.at_close = 0
        self.without: list[str] = []

    def see(self, line: str) -> None:
        found = _CALL.match(line)
        if found is None:
            return
        _, name, descriptor, path, rest = found.groups()
        if path.endswith("/" + self._lock):
            if name == "flock" and "LOCK_EX" in rest and rest.endswith("= 0"):
                self._holders.add(descriptor)
            elif (name == "flock" and "LOCK_UN" in rest) or name == "close":
                self._holders.discard(descriptor)
        elif path.endswith("/" + self._database):
            if name == "fcntl" and _EXCLUSIVE in rest and "F_SETLK" in rest and rest.endswith("= 0"):
                self._alone = "F_WRLCK" in rest
            elif name == "close":
                self._alone = False
            elif name in ("pwrite64", "write", "ftruncate"):
                if self._holders:
                    self.under_lock += 1
                elif self._alone:
                    self.at_close += 1
                else:
                    self.without.append(line[:200])


def _lines(trace: Path) -> Iterator[str]:
    """Whole calls. One that another thread interrupts in the record counts where it ends, a write where it begins."""
    begun: dict[str, str] = {}
    for line in trace.read_text(errors="replace").splitlines():
        if cut := _BEGUN.match(line):
            begun[cut[1]] = cut[2]
            if "write" in cut[2]:
                yield f"{cut[1]} {cut[2]}"
        elif rest := _RESUMED.match(line):
            first = begun.pop(rest[1])
            if "write" not in rest[2]:
                yield f"{rest[1]} {first}{rest[3]}"
        else:
            yield line


def _trace(what: str, tmp_path: Path, database: str, lock: str) -> Writes:
    trace = tmp_path / "trace"
    calls = "trace=flock,fcntl,pwrite64,write,ftruncate,close"
    run = [sys.executable, "-m", "tests.crash.checkpoint_run", what, str(tmp_path / "data")]
    strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-y", "-s", "0", "-e", calls, "-o", str(trace), "--"]
    subprocess.run([*strace, *run], cwd=ROOT, check=True, timeout=120)
    writes = Writes(database, lock)
    for line in _lines(trace):
        writes.see(line)
    return writes


@pytest.mark.parametrize("what", CASES)
def test_the_log_is_copied_under_the_lock_alone(
    strace: None, tmp_path: Path, what: str, tell: Callable[[str], None]
) -> None:
    writes = _trace(what, tmp_path, *CASES[what])
    assert writes.without == []
    assert writes.under_lock > 20, "nothing was copied"
    tell(f"{writes.under_lock} writes of WAL checkpoints under the lock of the {what}, 0 without")


def test_a_checkpoint_without_a_lock_is_seen(strace: None, tmp_path: Path) -> None:
    writes = _trace("plain", tmp_path, "plain.db", "plain.lock")
    assert len(writes.without) > 20
    assert writes.at_close > 0
