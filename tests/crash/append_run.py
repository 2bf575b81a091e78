"""The scripted append run as a program of its own, to be killed, traced and failed at its system calls.

`python -m tests.crash.append_run --serve FD` reads jobs from a socket, one JSON line each, and plays each in a
forked child: a job costs a fork, not the start of an interpreter. The child plays the script in BASE/deep/data from
where it stands, and says in BASE/said what happens, each line before it goes on. It says so by `writev`, which
nothing else here uses, so that errors can be injected into every other call without touching what is said.

strace counts calls for each process and name, and strikes at a count that is fixed when it starts. To be struck at
its n-th call, a child first makes calls of that name that do nothing, until only n are left to the count.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from redkey.errors import StoreError, StoreMisused, StorePoisoned
from redkey.stores.sqlite import SqliteStore, writer
from tests.crash import plants
from tests.crash.judge import Ack, heads
from tests.crash.script import REOPENED_AFTER, UNITS, ScriptClock, play, reached
from tests.harness.small_store import live
from tests.harness.workshop import CountedClock

DATA = Path("deep", "data")
SAID, TRACEBACK = "said", "traceback"
# How a child ends.
DONE, FAILED, POISONED, GAVE_UP, NOT_OPENED = 0, 1, 3, 4, 5
# How often a unit that was refused is tried again, as a client would.
_TRIES = 4
_NO_FILE, _NOWHERE = 1_000_000, Path("nowhere", "at", "all")
# For each call one that does nothing, under the names that machines give it.
IDLE: dict[str, Callable[[], object]] = {
    "openat": lambda: os.open(_NOWHERE, os.O_RDONLY),
    "write": lambda: os.write(_NO_FILE, b"."),
    "writev": lambda: os.writev(_NO_FILE, [b"."]),
    "pwrite64": lambda: os.pwrite(_NO_FILE, b".", 0),
    "fsync": lambda: os.fsync(_NO_FILE),
    "fdatasync": lambda: os.fdatasync(_NO_FILE),
    "ftruncate": lambda: os.ftruncate(_NO_FILE, 0),
    "fchown": lambda: os.fchown(_NO_FILE, -1, -1),
    "rename": lambda: _NOWHERE.rename(_NOWHERE),
    "renameat": lambda: _NOWHERE.rename(_NOWHERE),
    "renameat2": lambda: _NOWHERE.rename(_NOWHERE),
    "unlink": _NOWHERE.unlink,
    "unlinkat": _NOWHERE.unlink,
    "mkdir": _NOWHERE.mkdir,
    "mkdirat": _NOWHERE.mkdir,
    "chmod": lambda: _NOWHERE.chmod(0),
    "fchmodat": lambda: _NOWHERE.chmod(0),
}


class Job(msgspec.Struct, frozen=True):
    """One child to run: where, how many idle calls of which name it makes first, and with which planted bug."""

    base: str
    idle_name: str = ""
    idle_calls: int = 0
    plant: str = ""
    close_when_poisoned: bool = False
    # Real commands through the coordinator in place of the script.
    commands: bool = False


class Ended(msgspec.Struct, frozen=True):
    """How a child ended: its process id, and its exit code or minus the signal that killed it."""

    pid: int
    code: int


class Run:
    """One play of the script, from where the directory stands to its end."""

    def __init__(self, job: Job) -> None:
        self._base = Path(job.base)
        self._close_when_poisoned = job.close_when_poisoned
        self._said = os.open(self._base / SAID, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._clock = ScriptClock()

    def play(self) -> int:
        try:
            store = self._open()
            number, tries = reached(store) + 1, 0
            self._clock.seconds = number
            # What a store shows after it was opened is built upon: from here on it counts as acknowledged.
            self._acknowledge(store, number - 1)
            while number <= len(UNITS):
                try:
                    self._play(store, number)
                except StorePoisoned as poison:
                    return self._end_poisoned(store, poison)
                except StoreError as error:
                    self._say(refused=error.code, unit=number, message=error.message)
                    assert reached(store) == number - 1, "a unit that was refused is there"
                    tries += 1
                    if tries > _TRIES:
                        return GAVE_UP
                    continue
                if number in REOPENED_AFTER:
                    store.close()
                    store = self._open()
                number, tries = number + 1, 0
            store.close()
        except _NotOpened:
            return NOT_OPENED
        return DONE

    def _play(self, store: SqliteStore, number: int) -> None:
        if plants.acknowledges_early:
            early = plants.EarlyStore(store, lambda: self._say(unit=number, heads={}, acknowledged=True))
            play(early, self._clock, number)  # type: ignore[arg-type]
        else:
            play(store, self._clock, number)
            self._acknowledge(store, number)

    def _acknowledge(self, store: SqliteStore, number: int) -> None:
        self._say(unit=number, heads=heads(store), acknowledged=True)

    def _open(self) -> SqliteStore:
        try:
            return SqliteStore(self._base / DATA, self._clock)
        except StoreError as error:
            self._say(not_opened=error.code, message=error.message)
            raise _NotOpened from error

    def _end_poisoned(self, store: SqliteStore, poison: StorePoisoned) -> int:
        """A poisoned store refuses everything, however it is asked; then the process ends."""
        self._say(poisoned=poison.message)
        for use in (store.together().__enter__, store.topics, store.hold, store.look, lambda: store.head("1.0.1001")):
            try:
                use()
            except StorePoisoned:
                continue
            except StoreMisused as misused:
                raise AssertionError(f"a poisoned store said {misused.code}") from misused
            raise AssertionError("a poisoned store was used")
        if self._close_when_poisoned:
            store.close()
        return POISONED

    def _say(self, **what: Any) -> None:
        os.writev(self._said, [msgspec.json.encode(what), b"\n"])


class CommandRun(Run):
    """Real commands through the coordinator, into a new directory, to their end; what is durable is said."""

    def play(self) -> int:
        with SqliteStore(self._base / DATA, CountedClock()) as store:
            asyncio.run(live(store, lambda: self._acknowledge(store, 0)))
        return DONE


class _NotOpened(Exception):
    """The store did not open; why was said."""


def run_job(job: Job) -> int:
    """What a child does."""
    # The log is copied into the database every few units, as it would be every few hundred.
    writer._LOG_UNITS = 4
    if job.plant:
        plants.plant(job.plant)
    for _ in range(job.idle_calls):
        try:
            IDLE[job.idle_name]()
        except OSError:
            continue
    return CommandRun(job).play() if job.commands else Run(job).play()


def said(base: Path) -> list[dict[str, Any]]:
    """What the runs in BASE have said; a last line that was cut short is none."""
    path = base / SAID
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line) for line in lines]


def acknowledged(base: Path) -> list[Ack]:
    """What the runs in BASE have acknowledged."""
    return [Ack(**line) for line in said(base) if line.pop("acknowledged", False)]


def traceback_of(base: Path) -> str:
    """Why a child failed, when it did."""
    path = base / TRACEBACK
    return path.read_text() if path.exists() else ""


def serve(channel: socket.socket) -> None:
    """Run jobs until the other side hangs up."""
    with TemporaryDirectory(prefix="redkey-warm-") as directory:
        # Whatever is imported or opened on first use is so before the first job.
        run_job(Job(directory))
    with TemporaryDirectory(prefix="redkey-warm-") as directory:
        run_job(Job(directory, commands=True))
    jobs = channel.makefile("rb")
    channel.sendall(b"ready\n")
    for line in jobs:
        job = msgspec.json.decode(line, type=Job)
        pid = os.fork()
        if pid == 0:
            _be_child(job)
        _, status = os.waitpid(pid, 0)
        channel.sendall(msgspec.json.encode(Ended(pid, os.waitstatus_to_exitcode(status))) + b"\n")


def _be_child(job: Job) -> None:
    code = FAILED
    try:
        code = run_job(job)
    except BaseException:
        Path(job.base, TRACEBACK).write_text(traceback.format_exc())
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[2])))
