"""Workers of both SDKs on one queue, and a server that is killed in the middle: one winner each, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from redkey.client import RedKey
from tests.harness.ports import lasting_port
from tests.harness.server import begin
from tests.typescript.conftest import PATIENCE_SECONDS, Compiled, clean

TASKS = 500
# How long there is no server.
GONE_SECONDS = 5.0 if os.environ.get("REDKEY_TEST_LONG") == "1" else 2.0


def test_sixteen_workers_of_both_sdks_and_a_killed_server(
    compiled: Compiled, tmp_path: Path, record_property: Any
) -> None:
    port, notes = str(lasting_port()), {name: tmp_path / name for name in ("typescript", "python")}
    first = begin(tmp_path, "--port", port)
    environment = clean(REDKEY_URL=first.url, REDKEY_API_KEY=first.key)
    commands = {
        "typescript": compiled.command("race", "race", str(notes["typescript"])),
        "python": [sys.executable, str(Path(__file__).parent / "race_workers.py"), "race", str(notes["python"])],
    }
    processes: list[subprocess.Popen[bytes]] = []
    second = first
    try:
        with RedKey(first.url, first.key) as rk:
            rk.queues.create("race")
            processes += [subprocess.Popen(command, env=environment) for command in commands.values()]
            for _ in range(TASKS // 250):
                rk.tasks.create_many("race", [{"title": "T"} for _ in range(250)])
            # Early: this process may hear of the tasks long after they were done.
            completed(rk, TASKS // 10)
            first.stop(signal.SIGKILL)
            begun_before = len(begun(notes.values()))
            time.sleep(GONE_SECONDS)
            second = begin(tmp_path, "--port", port, name="second")
            done = completed(rk, TASKS)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(PATIENCE_SECONDS) for process in processes]
            winners = Counter(event.subject.id for event in rk.ledger.query(type="task.complete", limit=500))
            outputs = Counter(rk.tasks.get(task_id).output for task_id in done)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for server in (first, second):
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    assert codes == [0, 0]
    assert begun_before < TASKS, "the server was killed when all was done"
    assert len(winners) == TASKS
    assert set(winners.values()) == {1}
    noted = begun(notes.values())
    assert len(set(noted)) == len(noted), "a handler ran twice under one claim"
    assert min(outputs["typescript"], outputs["python"]) > 0
    told = ", ".join(f"{count} by {name}" for name, count in sorted(outputs.items()))
    record_property("proven", f"TypeScript SDK: {TASKS} tasks over a killed server, one winner each: {told}")


def begun(files: Iterable[Path]) -> list[str]:
    """Every task and claim that a handler was called for."""
    return [line for file in files if file.exists() for line in file.read_text().splitlines()]


def completed(rk: RedKey, count: int) -> set[str]:
    """The tasks that have been completed, once there are so many."""
    found: set[str] = set()
    for event in rk.events.follow(types="task.complete", after=0):
        found.add(event.subject.id)
        if len(found) >= count:
            return found
    pytest.fail("the stream ended")
