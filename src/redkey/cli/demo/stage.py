"""The stage: a server in a temporary directory and the agents' processes, started and ended together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from redkey.cli.demo.cast import Player
from redkey.client import RedKey
from redkey.errors import RedKeyError

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class DemoFailed(RedKeyError):
    """The demo failed."""

    code = "demo_failed"


class Stage:
    """All processes of the demo. Each one ends when the demo ends."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        self._server: subprocess.Popen[bytes] | None = None
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop_agents()
        self._end_server()

    def serve(self) -> RedKey:
        """Start `redkey serve` on an empty directory, and create a client with its first key."""
        ready = self.home / "ready.json"
        arguments = ["--data", str(self.data), "--port", "0", "--ready-file", str(ready), "--log-format", "json"]
        self._server = self._start("server", "redkey.cli.demo.server", arguments, _environment())
        deadline = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise DemoFailed(f"the server did not start: {self._last_words('server')}")
            time.sleep(0.02)
        self.url = json.loads(ready.read_text())["url"]
        return RedKey(self.url, json.loads((self.data / "credentials.json").read_text())["apiKey"])

    def send_in(self, player: Player, agent_id: str, api_key: str, seed: int, lease_seconds: int) -> None:
        """Start the process of an agent, with its own key."""
        given = _environment(REDKEY_URL=self.url, REDKEY_API_KEY=api_key, REDKEY_AGENT_ID=agent_id)
        arguments = [player.name, player.role, str(seed), str(lease_seconds)]
        self._agents[agent_id] = self._start(player.name, "redkey.cli.demo.agent", arguments, given)

    def kill(self, agent_id: str) -> int:
        """Kill the process with `kill -9`, like a crash; return its process id."""
        process = self._agents.pop(agent_id)
        process.kill()
        process.wait()
        return process.pid

    def check(self) -> None:
        """Raise an error if any process but the killed one has ended."""
        for agent_id, process in self._agents.items():
            if process.poll() is not None:
                name = str(process.args[3]) if isinstance(process.args, list) else agent_id
                raise DemoFailed(f"the agent {name} ended by itself: {self._last_words(name)}")
        if self._server is not None and self._server.poll() is not None:
            raise DemoFailed(f"the server ended by itself: {self._last_words('server')}")

    def stop_agents(self) -> None:
        """End all agents and wait for their processes."""
        for process in self._agents.values():
            _cut(process)
        for process in self._agents.values():
            _wait(process)
        self._agents.clear()

    def stop_server(self) -> None:
        """Ask the server to stop, like an operator; raise an error if it fails."""
        code = self._end_server()
        if code != 0:
            raise DemoFailed(f"the server ended with {code}: {self._last_words('server')}")

    def _end_server(self) -> int:
        if self._server is None:
            return 0
        if self._server.poll() is None:
            self._server.send_signal(signal.SIGTERM)
        _wait(self._server)
        _cut(self._server)
        code, self._server = self._server.returncode, None
        return code

    def _start(
        self, name: str, module: str, arguments: list[str], environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        with (self.home / f"{name}.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 (our own interpreter and modules)
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                # Ctrl-C is for the demo, which ends the other processes itself.
                start_new_session=True,
            )

    def _last_words(self, name: str) -> str:
        lines = (self.home / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _environment(**given: str) -> dict[str, str]:
    """Return the environment without settings that were meant for another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")} | given


def _cut(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
