"""A server process to be measured: `redkey serve` with everything on as it comes, or a bare echo by the same host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 300.0
_LOOK_SECONDS = 0.002


class Served:
    """A running server: where it is, what it costs."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, key: str, seconds: float) -> None:
        self.process, self.url, self.key = process, url, key
        # From the start of the process until it said that it answers.
        self.start_seconds = seconds

    @property
    def processor_seconds(self) -> float:
        """Seconds of the processor that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_bytes(self) -> int:
        """The memory that it has now."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def redkey(directory: Path, name: str = "server") -> Iterator[Served]:
    """`redkey serve` on `directory/data`."""
    ready = directory / f"{name}.ready"
    command = ["-m", "redkey", "serve", "--data", str(directory / "data"), "--port", "0", "--ready-file", str(ready)]
    with _process(command, ready) as (process, url, seconds):
        key = json.loads((directory / "data/credentials.json").read_text())["apiKey"]
        yield Served(process, url, key, seconds)


@contextmanager
def timed(directory: Path, totals: Path) -> Iterator[Served]:
    """`redkey serve` with stopwatches around its parts, which it writes to a file on SIGUSR1."""
    ready, data = directory / "timed.ready", directory / "data"
    serve = ["serve", "--data", str(data), "--port", "0", "--ready-file", str(ready)]
    with _process(["-m", "bench.timed_server", str(totals), *serve], ready) as (process, url, seconds):
        yield Served(process, url, json.loads((data / "credentials.json").read_text())["apiKey"], seconds)


@contextmanager
def echo(directory: Path) -> Iterator[Served]:
    """The same host with nothing behind it: every request is answered with its own body."""
    ready = directory / "echo.ready"
    with _process(["-m", "bench.echo", str(ready)], ready) as (process, url, seconds):
        yield Served(process, url, "rk_nobody_asks", seconds)


@contextmanager
def _process(command: list[str], ready: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, float]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    quiet, begun = subprocess.DEVNULL, time.monotonic()
    process = subprocess.Popen([sys.executable, *command], stdout=quiet, stderr=quiet, env=clean)
    try:
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > begun + START_SECONDS:
                raise RuntimeError(f"{command} did not start")
            time.sleep(_LOOK_SECONDS)
        yield process, json.loads(ready.read_text())["url"], time.monotonic() - begun
    finally:
        process.terminate()
        process.wait()
