"""The processor time of a process, the duration of an fsync, and the build of the interpreter.

Processor time is read from outside, from the kernel's counters in nanoseconds, so it costs the server nothing.
"""

from __future__ import annotations

import os
import platform
import statistics
import sysconfig
import tempfile
import time
from dataclasses import dataclass, fields
from mmap import ACCESS_READ, mmap
from pathlib import Path

# What a watched server counts, each in two cells: nanoseconds and calls.
CELLS = ("whole", "answer", "decide", "finish", "commit")
CELLS_BYTES = 16 * len(CELLS)
_FSYNCS = 64
_READINGS = 20


@dataclass(frozen=True)
class Spent:
    """Nanoseconds of processor time of a server process, and the number of its units of work.

    `process` is the total; `loop` is its first thread, which runs the event loop; `whole` is the part of it that units
    take until they are answered. Values that the server does not watch are 0.
    """

    process: int = 0
    loop: int = 0
    whole: int = 0
    answer: int = 0
    decide: int = 0
    finish: int = 0
    commit: int = 0
    units: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(self)))

    @property
    def unit(self) -> int:
        """From the start of units until they are durable; answering calls listeners and starts replies."""
        return self.whole - self.answer

    @property
    def threads(self) -> int:
        """Time of other threads. The two clocks may be read microseconds apart, so it is at least 0."""
        return max(0, self.process - self.loop)

    @property
    def outside(self) -> int:
        """Time of the event loop outside of units and their answering: read, authenticate, decode, handle."""
        return self.process - self.whole - self.threads


def process_nanoseconds(pid: int) -> int:
    """Processor time of a whole process, ended threads included."""
    # The number of another process's clock, as clock_getcpuclockid(3) computes it on Linux.
    return time.clock_gettime_ns((~pid << 3) | 2)


def spent(pid: int, cells: Path | None = None) -> Spent:
    """Read the clocks of a process and, for a watched server, its cells.

    They are read again, a few times, if the process works in between: then all values are of one moment, even if this
    process is paused between two reads.
    """
    process = process_nanoseconds(pid)
    for _ in range(_READINGS):
        before = process
        loop = int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])
        counted = [] if cells is None else _counted(cells)
        process = process_nanoseconds(pid)
        if process == before:
            break
    return Spent(process, loop, *counted[::2], units=counted[1]) if counted else Spent(process, loop)


def _counted(cells: Path) -> list[int]:
    with cells.open("rb") as file, mmap(file.fileno(), CELLS_BYTES, access=ACCESS_READ) as shared:
        return memoryview(shared[:]).cast("q").tolist()


def fsync_milliseconds(folder: Path) -> float:
    """The median time of a lone write and fsync of 700 bytes in a folder."""
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_FSYNCS):
            begun = time.perf_counter()
            file.write(b"x" * 700)
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


def interpreter() -> str:
    """Version and build of this interpreter: one without PGO and LTO is 10 to 15 % slower."""
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    flags = {"PGO": "--enable-optimizations", "LTO": "--with-lto"}
    if "deb_system" in sysconfig.get_scheme_names():
        # Debian optimises in its own build rules, and removes the flags from what the interpreter reports.
        build = "Debian's build, PGO, LTO"
    else:
        build = ", ".join(name if flag in configured else f"no {name}" for name, flag in flags.items())
    return f"{platform.python_implementation()} {platform.python_version()} ({platform.python_compiler()}, {build})"
