"""`redkey bus serve` as a process that tests can call, stop and kill."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.harness.weave import Link, join

PATIENCE_SECONDS = 60.0


class BusProcess:
    """A running bus."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        self._ready, self.log = home.parent / "bus.ready", home.parent / "bus.log"
        self._ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "redkey", "bus", "serve", "--home", str(home)]
        command += ["--ready-file", str(self._ready), "--log-format", "json", *arguments]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("REDKEY_", "WEAVE_"))}
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=clean)
        self.url = str(self._wait()["url"])
        self.token = (home / "token").read_text().strip()

    def link(self) -> Link:
        return Link(self.home / "coord.sock")

    def join(self, session: str, agent: str) -> Link:
        return join(self.home / "coord.sock", session, agent)

    def session(self) -> str:
        with self.link() as link:
            return str(link.ask("session.create", "codex-cli")["session"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Stop the bus and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> BusProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()

    def _wait(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        descriptor = os.pidfd_open(self.process.pid)
        try:
            while time.monotonic() < deadline:
                if self._ready.exists():
                    found: dict[str, Any] = json.loads(self._ready.read_text())
                    return found
                if select.select([descriptor], [], [], 0.02)[0]:
                    break
        finally:
            os.close(descriptor)
        self.kill()
        raise AssertionError(f"the bus did not become ready: {self.log.read_text()}")
