"""Client processes for the races: started together, given a start signal, and always ended."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0


class Process:
    """A running script of this folder: lines in, lines out."""

    def __init__(self, module: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"tests.harness.{module}", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )

    def tell(self, line: str) -> None:
        stream = self._stream(self.process.stdin)
        stream.write(line + "\n")
        stream.flush()

    def hear(self) -> str:
        """The next line; AssertionError if the process ended instead, or took too long and was killed."""
        patience = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        patience.start()
        line = self._stream(self.process.stdout).readline()
        patience.cancel()
        assert line, f"{self.process.args!r} ended with {self.process.wait()}"
        return line.rstrip("\n")

    def finish(self) -> None:
        """Close its standard input and let it end."""
        self._stream(self.process.stdin).close()
        assert self.process.wait(60) == 0

    def end(self) -> None:
        """Kill it, whether it is stopped, running or gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            self._stream(stream).close()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


@contextmanager
def processes() -> Iterator[list[Process]]:
    """A list for processes; they are ended with the block."""
    running: list[Process] = []
    try:
        yield running
    finally:
        for one in running:
            one.end()


def open_files() -> int:
    """How many files a process may have open; child processes get the same limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
