"""Limits: the best that this machine can do for operations that RedKey depends on.

The rate of a lone fsync limits what one connection can do durably; the hash chain is what the ledger adds to a log.
The bare echo of the server's host is measured in `coordination`, SQLite's bare inserts in `ledger`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path

from bench import row

RECORD = b"x" * 700


def main(quick: bool) -> None:
    """Measure for a second each, or for a third of a second."""
    seconds = 0.3 if quick else 1.0
    for batch in (1, 64):
        row(f"records of 700 bytes, fsync after {batch}", _synced(seconds, batch))
    row("SHA-384 chain over such records", _chained(seconds))


def _synced(seconds: float, batch: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        descriptor = os.open(Path(folder) / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            os.write(descriptor, RECORD * batch)
            os.fsync(descriptor)
            count += batch
        rate = count / (time.perf_counter() - begun)
        os.close(descriptor)
        return rate


def _chained(seconds: float) -> float:
    running, count, begun = bytes(48), 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for _ in range(1000):
            running = hashlib.sha384(running + RECORD).digest()
        count += 1000
    return count / (time.perf_counter() - begun)
