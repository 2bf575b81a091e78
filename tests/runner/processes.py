"""Questions that tests ask about processes."""

from __future__ import annotations

import time
from pathlib import Path

PATIENCE_SECONDS = 60
# Time limits for a program that must get somewhere before it is stopped. On a busy machine a short one may be over
# before the program has begun, which shows nothing: then the next one is tried.
GROWING_SECONDS = (0.5, 5.0, 30.0)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    """True as soon as a process has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


def pids(path: Path, count: int) -> list[int]:
    """The process ids in a file, once there are as many as awaited."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if path.exists() and len(found := path.read_text().split()) >= count:
            return [int(pid) for pid in found]
        time.sleep(0.01)
    raise AssertionError(f"no {count} process ids came")
