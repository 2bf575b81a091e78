"""How long a test waits for a process: a minute of the process's own time, whatever else the machine does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 60.0
# After this no process is waited for, however little of the machine it got.
MOST_SECONDS = 900.0


class Patience:
    """A deadline for processes, this one included.

    Time in which a process was ready to run and had no processor does not count. So a server that hangs is noticed
    after a minute, and a server on a machine with thirty busy programs is not taken for one that hangs.
    """

    def __init__(self, *pids: int, seconds: float = SECONDS) -> None:
        self._pids, self._seconds = (os.getpid(), *pids), seconds
        self._begun, self._waited = time.monotonic(), self._waiting()

    @property
    def is_over(self) -> bool:
        """True when the processes had their time."""
        passed = time.monotonic() - self._begun
        waited = sum(max(0.0, now - before) for now, before in zip(self._waiting(), self._waited, strict=True))
        return passed > MOST_SECONDS or passed - waited > self._seconds

    def until(self, true: Callable[[], Any], what: str = "it did not come to pass") -> None:
        """Wait until something is so, asking again and again."""
        while not true():
            assert not self.is_over, what
            time.sleep(0.01)

    def _waiting(self) -> list[float]:
        """Seconds that each process has waited for a processor so far; 0 where the kernel does not say."""
        return [waiting_seconds(pid) for pid in self._pids]


def waiting_seconds(pid: int) -> float:
    """Seconds for which the first thread of a process was ready to run and had to wait."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
