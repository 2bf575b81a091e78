"""A scene for whole runs: a real server, `redkey run` processes, and agents as shell scripts and Python functions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from redkey.client import Conflict, RedKey
from tests.harness.acts import until
from tests.harness.server import PATIENCE_SECONDS, Server

__all__ = ["Runner", "Scene", "output", "scene", "until"]


def output(**more: Any) -> str:
    """An output envelope as an agent prints it."""
    plain = {"success": True, "summary": "Done.", "artifacts": [], "notes": [], "recommendation": "proceed"}
    return json.dumps({**plain, **more})


class Runner:
    """A `redkey run` process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log

    def told(self) -> list[dict[str, Any]]:
        """Its complete output lines so far."""
        lines = (self._log.read_text().rpartition("\n")[0]).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def events(self) -> list[str]:
        return [one["event"] for one in self.told()]

    def log(self) -> str:
        return self._log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


class Scene:
    """A server with a queue and agent names of its own."""

    def __init__(self, directory: Path, server: Server, queue: str = "work", suffix: str = "") -> None:
        self.directory, self.server, self.queue, self.suffix = directory, server, queue, suffix
        self.rk = RedKey(server.url, server.key)
        self._runners: list[Runner] = []

    def card(self, slug: str, **more: Any) -> Path:
        """A card file with two escalation rules."""
        slug += self.suffix
        path = self.directory / f"{slug}.json"
        value = {
            "card_version": "1.0",
            "identity": {"slug": slug, "name": slug.title(), "department": "dev", "reports_to": "human", "model": "m"},
            "scope": "I do what tests ask.",
            "capabilities": ["Testing"],
            "constraints": ["I never guess", "I never wait", "I never lie"],
            "escalation_rules": [
                {"trigger": "The brief is missing something", "route_to": "roles.ba", "via": "task.blocked"},
                {"trigger": "I could guess", "route_to": "mindy", "via": "inbox"},
                {"trigger": "It costs money", "route_to": "exec", "via": "exec.gate"},
            ],
            "output_types": ["output_ref_file"],
            "working_style": "I read, do, stop.",
            "voice": {"description": "Terse.", "example": "Done."},
            "values": ["Exactness"],
            **more,
        }
        path.write_text(json.dumps(value))
        return path

    def run(self, *arguments: str, card: str = "quinn", **environment: str) -> Runner:
        """Start a runner and wait until it is ready. Failed tasks of the queue are not retried automatically."""
        self.ensure_queue()
        work = str(self.directory / f"work-{card}")
        command = ["--card", str(self.card(card)), "--queue", self.queue, "--work", work]
        return self.start([*command, "--memory", "words", *arguments], **environment)

    def start(self, arguments: list[str], *, under: Sequence[str] = (), **environment: str) -> Runner:
        """Start a runner of one agent and wait until it is ready."""
        runner = self.begin(arguments, under=under, **environment)
        until(lambda: "ready" in runner.events() or runner.process.poll() is not None, PATIENCE_SECONDS)
        assert runner.process.poll() is None, runner.log()
        return runner

    def begin(self, arguments: list[str], *, under: Sequence[str] = (), **environment: str) -> Runner:
        """Start a `redkey run` process; `under` is a command that runs the rest of its arguments."""
        log = self.directory / f"runner-{len(self._runners)}.log"
        command = [*under, sys.executable, "-m", "redkey", "run", "--json", *arguments]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("REDKEY_")}
        known = {"REDKEY_URL": self.server.url, "REDKEY_API_KEY": self.server.key, "PYTHONUNBUFFERED": "1"}
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.PIPE, env=clean | known | environment
            )
        runner = Runner(process, log)
        self._runners.append(runner)
        return runner

    def script(self, name: str, text: str) -> str:
        """Write a shell script; return the command that runs it."""
        path = self.directory / name
        path.write_text(text)
        return f"sh {path}"

    def ensure_queue(self) -> None:
        with contextlib.suppress(Conflict):
            self.rk.queues.create(self.queue)

    def task(self, title: str = "Do it", **more: Any) -> str:
        """Create a task in the queue; return its id."""
        self.ensure_queue()
        return self.rk.tasks.create(self.queue, title=title, **more).task_id

    def state(self, task_id: str) -> str:
        return self.rk.tasks.get(task_id).state

    def ends(self, task_id: str, state: str) -> Any:
        """Wait for a task to reach a state; on failure, the error contains its details and all logs."""
        self.wait(lambda: self.state(task_id) == state, PATIENCE_SECONDS, task_id)
        return self.rk.tasks.get(task_id)

    def wait(self, true: Callable[[], Any], seconds: float, *tasks: str) -> None:
        """Wait for a condition; on failure, the error contains these tasks and all logs."""
        try:
            until(true, seconds)
        except AssertionError:
            shown = [str(self.rk.tasks.get(task_id)) for task_id in tasks]
            logs = [runner.log() for runner in self._runners]
            raise AssertionError("\n".join([*shown, *logs])) from None

    def until_told(self, runner: Runner, event: str) -> None:
        """Wait until a runner has printed an event."""
        try:
            until(lambda: event in runner.events(), PATIENCE_SECONDS)
        except AssertionError:
            raise AssertionError(f"no {event!r}:\n{runner.log()}") from None

    def types(self, task_id: str) -> list[str]:
        """The types of a task's own events, in order, without those of its claims."""
        return [one.type for one in self.rk.tasks.events(task_id) if one.type.startswith(("task.", "artifact."))]

    def close(self) -> None:
        self.rk.close()
        for runner in self._runners:
            if runner.process.poll() is None:
                runner.process.kill()
            runner.process.wait()
            if runner.process.stdin is not None:
                runner.process.stdin.close()


@contextlib.contextmanager
def scene(directory: Path, server: Server, queue: str = "work", suffix: str = "") -> Iterator[Scene]:
    """A scene for the duration of a block; its runners are always ended."""
    made = Scene(directory, server, queue, suffix)
    try:
        yield made
    finally:
        made.close()
