"""strace around the append run: strikes it at a chosen call, and records what it does to files.

What strace says is turned into `Call`s here and nowhere else.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType

import msgspec

from tests.crash.append_run import IDLE, Ended, Job

ROOT = Path(__file__).parents[2]
# Every call that can change a file or a name. Those marked are not on every machine.
TRACED = """
openat ?open ?creat write writev pwrite64 ?pwritev ?pwritev2 ftruncate ?truncate ?fallocate ?copy_file_range ?sendfile
?rename ?renameat ?renameat2 ?unlink ?unlinkat ?rmdir ?link ?linkat ?symlink ?symlinkat ?mkdir ?mkdirat
fsync fdatasync ?sync ?syncfs ?sync_file_range ?msync ?chmod ?fchmod ?fchmodat ?fchown
"""
# The count at which strace strikes; idle calls bring a child up to it. It is beyond what a whole run makes, and for
# openat beyond what the start of the interpreter makes.
_STRIKES = dict.fromkeys(IDLE, 1200) | {"openat": 2500}
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
_STRING = re.compile(r'"((?:\\x..)*)"')
# The name of an open file, and whether it was deleted meanwhile.
_FILE = re.compile(r"<((?:\\x..)+)>(\(deleted\))?")
# Calls whose first argument is an open file; the others name files by strings.
_BY_DESCRIPTOR = frozenset(("write", "writev", "pwrite64", "ftruncate", "fsync", "fdatasync", "fchmod", "fchown"))


class Call(msgspec.Struct, frozen=True):
    """One system call."""

    name: str
    # The files that it is about.
    paths: Sequence[str]
    # What it has written.
    data: bytes
    # Its other arguments, as strace writes them.
    rest: Sequence[str]
    # What it gave; None when it did not come to its end.
    result: int | None

    @property
    def failed(self) -> bool:
        return self.result is not None and self.result < 0


class Strike(msgspec.Struct, frozen=True):
    """What befalls a child at a call: SIGKILL, or an error once, or for a number of calls of that name."""

    what: str
    times: int = 1

    def options(self, names: Sequence[str]) -> Iterator[str]:
        for name in names:
            first = _STRIKES[name]
            when = f"{first}" if self.times == 1 else f"{first}..{first + self.times - 1}"
            yield f"--inject={name}:{self.what}:when={when}"


KILL = Strike("signal=KILL")


def available() -> bool:
    """True when strace is here and may trace."""
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return tried.returncode == 0


class Tracer:
    """An append run server under strace, in a `with`. What it did, when it is recorded, can be read afterwards."""

    def __init__(self, strike: Strike | None = None, *, record: Path | None = None, struck: Sequence[str] = ()) -> None:
        """Strikes children that ask for it; only at calls of the names in `struck`, when it is given."""
        options = [
            "-f",
            "-qq",
            "--signal=none",
            "-e",
            "trace=" + ",".join(TRACED.split()),
            "-o",
            str(record or "/dev/null"),
        ]
        if record is not None:
            options += ["-y", "-xx", "-s", "1000000"]
        if strike is None or "signal" not in strike.what:
            # Stops only at the calls that are traced; strace cannot inject signals then.
            options.append("--seccomp-bpf")
        if strike is not None:
            traced = [name.removeprefix("?") for name in TRACED.split()]
            options += strike.options(struck or [name for name in IDLE if name in traced])
        self._record = record
        self._ours, theirs = socket.socketpair()
        with theirs:
            program = [sys.executable, "-m", "tests.crash.append_run", "--serve", str(theirs.fileno())]
            self._process = subprocess.Popen(
                ["strace", *options, "--", *program], cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._answers = self._ours.makefile("rb")

    def __enter__(self) -> Tracer:
        if self._answers.readline() != b"ready\n":
            self.close()
            raise AssertionError("the append run did not start under strace")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the server end, and strace with it."""
        self._answers.close()
        self._ours.close()
        self._process.wait(60)

    def run(self, base: Path, name: str = "", at: int = 0, **options: str | bool) -> Ended:
        """Play the script in a child; struck at its call `at` of this name when one is given."""
        base.mkdir(parents=True, exist_ok=True)
        job = Job(str(base), name, _STRIKES[name] - at if name else 0, **options)  # type: ignore[arg-type]
        assert job.idle_calls >= 0, f"a run makes more calls of {name} than strace waits for"
        self._ours.sendall(msgspec.json.encode(job) + b"\n")
        answer = self._answers.readline()
        assert answer, "the append run server has died"
        return msgspec.json.decode(answer, type=Ended)

    def calls(self) -> Iterator[tuple[int, list[Call]]]:
        """What each child did, by its process id, one child after the other; after the server has ended."""
        assert self._record is not None
        with self._record.open("r") as file:
            lines = (parse_call(line) for line in file if "+++ " not in line[:40])
            for pid, group in groupby(lines, key=itemgetter(0)):
                yield pid, [call for _, call in group]


def parse_call(line: str) -> tuple[int, Call]:
    """The process and the call of a line of strace."""
    found = _LINE.match(line)
    assert found is not None, f"strace says what nobody here understands: {line[:300]}"
    pid, name, arguments, told, _ = found.groups()
    result = None if told == "?" else int(told)
    strings = [_unhex(text) for text in _STRING.findall(arguments)]
    rest = [part for part in arguments.split(", ") if not _STRING.search(part)]
    if name not in _BY_DESCRIPTOR:
        return int(pid), Call(name, [text.decode() for text in strings], b"", rest, result)
    written = b"".join(strings)[: max(0, result or 0)]
    file = _FILE.search(rest.pop(0))
    path = _unhex(file[1]).decode() + (" (deleted)" if file[2] else "") if file is not None else ""
    return int(pid), Call(name, [path] if path else [], written, rest, result)


def _unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
