"""A server process to measure: `redkey serve` with default settings, or a bare echo.

A server may come from another checkout: `tree` is its folder, and `redkey` is imported from there. The interpreter and
the libraries are always those of this process, because a ratio must compare only the checkouts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal

from bench.clocks import Spent, spent

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 300.0
STOP_SECONDS = 30.0
ANSWER_SECONDS = 60.0
_LOOK_SECONDS = 0.002


@dataclass
class Site:
    """The address of a server, and the key of its workspace."""

    url: str
    key: str

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)


class Served(Site):
    """A server process that runs here, with its costs."""

    def __init__(
        self, process: subprocess.Popen[bytes], url: str, key: str, seconds: float, cells: Path | None = None
    ) -> None:
        super().__init__(url, key)
        self.process = process
        # From the start of the process until it reported that it is ready.
        self.start_seconds = seconds
        # The file in which a watched server counts what its units take.
        self.cells = cells

    @property
    def spent(self) -> Spent:
        """The costs so far, read between two units of work.

        A unit is counted when it ends, and its replies may be sent before that. The event loop answers another
        request only after the unit, so no part of it is missing then.
        """
        with closing(HTTPConnection(*self.place, timeout=ANSWER_SECONDS)) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        return spent(self.process.pid, self.cells)

    @property
    def processor_seconds(self) -> float:
        """Processor seconds used so far."""
        return self.spent.process / 1e9

    @property
    def memory_bytes(self) -> int:
        """Its current memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def redkey(
    directory: Path,
    name: str = "server",
    *,
    tree: Path = ROOT,
    watched: Literal["", "unit", "parts"] = "",
    config: str = "",
) -> Iterator[Served]:
    """`redkey serve` on `directory/data`, with additional settings as TOML. For `watched` see `watched_server`."""
    ready, cells = directory / f"{name}.ready", directory / f"{name}.cells" if watched else None
    serve = ["serve", "--data", str(directory / "data"), "--port", "0", "--ready-file", str(ready)]
    if config:
        (directory / f"{name}.toml").write_text(config)
        serve += ["--config", str(directory / f"{name}.toml")]
    module = ["-m", "bench.watched_server", watched, str(cells)] if watched else ["-m", "redkey"]
    # `bench` always comes from this checkout, so the stopwatches are the same for all servers.
    with _process([*module, *serve], ready, [tree / "src", ROOT]) as (process, url, seconds):
        key = json.loads((directory / "data/credentials.json").read_text())["apiKey"]
        yield Served(process, url, key, seconds, cells)


@contextmanager
def echo(directory: Path, name: str = "echo", *, tree: Path = ROOT) -> Iterator[Served]:
    """RedKey's HTTP host with an echo behind it: every request is answered with its own body.

    A checkout's host runs the `bench.echo` of the same checkout.
    """
    ready = directory / f"{name}.ready"
    with _process(["-m", "bench.echo", str(ready)], ready, [tree / "src", tree]) as (process, url, seconds):
        yield Served(process, url, "rk_nobody_asks", seconds)


@contextmanager
def plain_echo(directory: Path) -> Iterator[Served]:
    """The same echo by a plain httptools protocol."""
    ready = directory / "plain.ready"
    with _process(["-m", "bench.plain_echo", str(ready)], ready, [ROOT]) as (process, url, seconds):
        yield Served(process, url, "rk_nobody_asks", seconds)


@contextmanager
def _process(
    command: list[str], ready: Path, imported: list[Path]
) -> Iterator[tuple[subprocess.Popen[bytes], str, float]]:
    # In an empty folder, because `-m` looks for modules in the current one first.
    (folder := ready.with_suffix(".cwd")).mkdir(exist_ok=True)
    errors, begun = ready.with_suffix(".errors"), time.monotonic()
    program = [sys.executable, *command]
    process: subprocess.Popen[bytes] | None = None
    try:
        with errors.open("wb") as said, uninterrupted():
            process = subprocess.Popen(
                program, stdout=subprocess.DEVNULL, stderr=said, cwd=folder, env=environment(imported)
            )
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > begun + START_SECONDS:
                last = errors.read_text(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"{' '.join(command)} did not start: {''.join(last) or 'it printed nothing'}")
            time.sleep(_LOOK_SECONDS)
        yield process, json.loads(ready.read_text())["url"], time.monotonic() - begun
    finally:
        if process is not None:
            stop(process)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM until the block has ended.

    An interrupt while a process is being started would leave that process running.
    """
    held: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            # Ignored signals stay ignored in the process that is started, too.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def environment(imported: list[Path]) -> dict[str, str]:
    """The environment of a program that imports from these folders first; settings of RedKey are not passed on."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    paths = [*map(str, imported), *filter(None, [clean.get("PYTHONPATH")])]
    return {**clean, "PYTHONPATH": os.pathsep.join(paths)}


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it if it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
