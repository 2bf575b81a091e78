"""Workers of both SDKs on a workspace that a slow network orders: every reply takes seconds, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from redkey.client import RedKey
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from tests.harness.organisations import organisations, said, until
from tests.typescript.conftest import PATIENCE_SECONDS, Compiled, clean

# How late receipts and the mirror are: on a public network a reply takes five to ten seconds.
DELAY_SECONDS, LAG_SECONDS = (3.0, 6.0) if os.environ.get("REDKEY_TEST_LONG") == "1" else (0.5, 1.0)
TASKS = 4


def test_workers_of_both_sdks_lose_no_lease_and_send_nothing_twice(compiled: Compiled, tmp_path: Path) -> None:
    faults = Faults(delay_seconds=DELAY_SECONDS, lag_seconds=LAG_SECONDS)
    processes: list[subprocess.Popen[bytes]] = []
    with StandIn(faults=faults) as standin, organisations(standin, tmp_path, "ours") as (ours,):
        begun = said(ours.operator.post("/workspaces", json={"order": "network"}), 201)
        workspace_id = begun["workspaceId"]
        ours.enter(begun["apiKey"])
        ours.admin.queues.create("race")
        for name in ("delay", "lag"):
            faults.rate(name, 1.0)
        began = time.monotonic()
        tasks = [ours.admin.tasks.create("race", title="T").task_id]
        assert time.monotonic() - began >= LAG_SECONDS, "the network is slow"
        with ThreadPoolExecutor(TASKS) as threads:
            made = threads.map(lambda _: ours.admin.tasks.create("race", title="T"), range(TASKS - 1))
            tasks += [one.task_id for one in made]
        environment = clean(RACE_LOG="yes", REDKEY_URL=ours.server.url, REDKEY_API_KEY=begun["apiKey"])
        notes = {name: tmp_path / name for name in ("typescript", "python")}
        logs = {name: tmp_path / f"{name}.log" for name in notes}
        commands = {
            "typescript": compiled.command("race", "race", str(notes["typescript"])),
            "python": [
                sys.executable,
                str(Path(__file__).parent / "race_workers.py"),
                "race",
                str(notes["python"]),
            ],
        }
        try:
            for name, command in commands.items():
                with logs[name].open("wb") as log:
                    processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            with RedKey(ours.server.url, begun["apiKey"], timeout=PATIENCE_SECONDS) as rk:
                ended = rk.tasks.wait(tasks, timeout=PATIENCE_SECONDS)
                until(lambda: len([one for one in rk.agents.list() if one.active]) == 16)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(PATIENCE_SECONDS) for process in processes]
        finally:
            faults.clear()
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        told = {name: log.read_text() for name, log in logs.items()}
        assert codes == [0, 0], told
        assert "could not be" not in told["typescript"], told
        assert {one.state for one in ended} == {"completed"}
        worked = [line.split()[0] for note in notes.values() if note.exists() for line in note.read_text().splitlines()]
        assert sorted(worked) == sorted(tasks), "each task was worked on once"
        types = Counter(one.type for one in ours.admin.ledger.query(limit=500))
        assert (types["task.complete"], types["task.lease_expired"]) == (TASKS, 0)
        topic = standin.state.topics[ours.ledger(workspace_id)["topic"]]
        wires = [message.record.wire for message in topic.messages]
        assert len(wires) == len(set(wires)), "a message was sent twice"
        active = [one.agent_id for one in ours.admin.agents.list() if one.active]
        assert active == [], "a worker that stops deactivates its agent"
