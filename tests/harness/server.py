"""A real server for tests: the `redkey serve` process, on a free port, with its data in a temporary directory."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.client import Client
from tests.harness.patience import Patience
from tests.harness.ports import users_of

PATIENCE_SECONDS = 60.0


class Server:
    """A running process."""

    def __init__(self, process: subprocess.Popen[bytes], ready: dict[str, object], data: Path, log: Path) -> None:
        self.process, self.data, self.log = process, data, log
        self.url, self.uds = str(ready["url"]), ready["uds"]
        self.workspace_id, self.pid = str(ready["workspaceId"]), ready["pid"]
        self.key = str(json.loads((data / "credentials.json").read_text())["apiKey"])

    def client(self, key: str | None = None) -> Client:
        """A caller with a key, by default the first one; every reply is validated against the server's OpenAPI."""
        return Client(self.url, key or self.key)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the process to stop, wait for it, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def logs(self) -> str:
        return self.log.read_text()


def begin(
    directory: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    config: str = "",
    name: str = "server",
    python: Sequence[str] = (sys.executable,),
) -> Server:
    """Start a server on `directory/data` and wait until it answers."""
    ready_file, log = directory / f"{name}.ready", directory / f"{name}.log"
    # A file that a killed server left would describe that server.
    ready_file.unlink(missing_ok=True)
    data = directory / "data"
    command = [*python, "-m", "redkey", "serve", "--data", str(data), "--port", "0"]
    command += ["--ready-file", str(ready_file), "--log-format", "json", *arguments]
    if config:
        (directory / f"{name}.toml").write_text(config)
        command += ["--config", str(directory / f"{name}.toml")]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("REDKEY_")}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**clean, **(environment or {})})
    try:
        return Server(process, _wait(process, ready_file, log), data, log)
    except BaseException as error:
        # Kill it, or it would keep running unnoticed.
        process.kill()
        process.wait()
        if "--port" in arguments:
            error.add_note(users_of(int(arguments[arguments.index("--port") + 1])))
        raise


@contextmanager
def serving(
    directory: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    config: str = "",
    name: str = "server",
    python: Sequence[str] = (sys.executable,),
) -> Iterator[Server]:
    """A server for the duration of a block; it is always stopped."""
    server = begin(directory, *arguments, environment=environment, config=config, name=name, python=python)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def _wait(process: subprocess.Popen[bytes], ready_file: Path, log: Path) -> dict[str, object]:
    """The content of the ready file, once it exists; also returns when the process ends."""
    patience = Patience(process.pid, seconds=PATIENCE_SECONDS)
    descriptor = os.pidfd_open(process.pid)
    try:
        while not patience.is_over:
            if ready_file.exists():
                found: dict[str, object] = json.loads(ready_file.read_text())
                return found
            if select.select([descriptor], [], [], 0.02)[0]:
                process.wait()
                raise AssertionError(f"the server ended with {process.returncode}: {log.read_text()}")
    finally:
        os.close(descriptor)
    process.kill()
    process.wait()
    raise AssertionError(f"the server did not become ready: {log.read_text()}")
