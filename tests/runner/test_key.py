"""The runner's key stays the runner's: the program of an agent cannot read it from the runner's process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.harness.scene import Scene, output

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc and prctl")

# Looks for the key, which the test wrote into a file, in every process between the program and `last`: in the
# environment and in all of the memory that can be read. Prints what it could open, and where it saw the key.
THIEF = """
import json, re, sys
from pathlib import Path

key, last, report = Path(sys.argv[1]).read_bytes(), int(sys.argv[2]), Path(sys.argv[3])

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def memory(pid):
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            low, high, mode = re.match("([0-9a-f]+)-([0-9a-f]+) (.)", line).groups()
            if mode == "r":
                try:
                    memory.seek(int(low, 16))
                    yield memory.read(int(high, 16) - int(low, 16))
                except (OSError, ValueError, OverflowError):
                    continue

seen, pid = [], parent("self")
while True:
    for name, read in (("environ", lambda: [Path(f"/proc/{pid}/environ").read_bytes()]), ("mem", lambda: memory(pid))):
        try:
            found = any(key in part for part in read())
        except OSError as refused:
            found = type(refused).__name__
        seen.append([pid, name, found])
    if pid == last or pid <= 1:
        break
    pid = parent(pid)
report.write_text(json.dumps(seen))
"""


def _steal(stage: Scene, last: int) -> dict[tuple[int, str], bool | str]:
    """Let an agent look for the key in all its ancestors up to one process; what it saw in each."""
    report = stage.directory / "seen.json"
    (stage.directory / "last").write_text(str(last))
    stage.ends(stage.task("It is quiet"), "completed")
    return {(pid, name): found for pid, name, found in json.loads(report.read_text())}


def _thief(stage: Scene) -> str:
    directory: Path = stage.directory
    (directory / "thief.py").write_text(THIEF)
    (directory / "key").write_text(stage.server.key)
    (directory / "answer.json").write_text(output())
    run = f"{sys.executable} {directory}/thief.py {directory}/key $(cat {directory}/last) {directory}/seen.json"
    return f"{run} && cat {directory}/answer.json"


def test_an_agent_cannot_read_the_key_from_its_runner(stage: Scene) -> None:
    runner = stage.run("--exec", _thief(stage))
    seen = _steal(stage, runner.process.pid)
    # The thief works: it reads all of its own shell, which has no key.
    assert list(seen.values())[:2] == [False, False]
    assert seen[runner.process.pid, "environ"] == "PermissionError"
    assert seen[runner.process.pid, "mem"] == "PermissionError"


def test_an_agent_cannot_read_the_key_from_its_fleet(stage: Scene) -> None:
    fleet_file = stage.directory / "fleet.toml"
    card = stage.card("quinn").name
    fleet_file.write_text(
        f'[agents.quinn]\ncard = "{card}"\nqueue = "{stage.queue}"\nmemory = "off"\nwork = "work"\n'
        f"exec = {json.dumps(_thief(stage))}\n"
    )
    fleet = stage.begin(["--fleet", str(fleet_file)])
    seen = _steal(stage, fleet.process.pid)
    assert seen[fleet.process.pid, "environ"] == "PermissionError"
    assert seen[fleet.process.pid, "mem"] == "PermissionError"
    assert True not in seen.values()


def test_the_work_is_the_runners_and_the_claims_are_the_agents(stage: Scene) -> None:
    """The runner is started with an admin's key: nothing of the work is recorded as a human's."""
    said = output(artifacts=[{"path": "a.txt", "operation": "create", "content": "x"}])
    (stage.directory / "said.json").write_text(said)
    first = stage.run("--exec", f"cat {stage.directory}/said.json")
    task_id = stage.task(outputs=["a"])
    stage.ends(task_id, "completed")
    (agent,) = stage.rk.agents.list(slug=f"quinn{stage.suffix}")
    shown = {one.type: one for one in stage.rk.tasks.events(task_id)}
    for name in ("task.claimed", "task.started", "artifact.ready", "task.complete"):
        assert (shown[name].actor.type, shown[name].actor.id) == ("agent", agent.agent_id), name
    for name in ("artifact.ready", "task.complete"):
        receipt = stage.rk.receipts.get(shown[name].event_id)
        assert (receipt.actor.type, receipt.actor.id) == ("agent", agent.agent_id), name
    # The key is kept for the next start, readable by its owner alone, and only one is made.
    kept = stage.directory / "work-quinn" / "runner-keys.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    # Nor is it committed by accident, where `--work` is in a repository.
    assert (kept.parent / ".gitignore").read_text().endswith("\n*\n")
    before = kept.read_bytes()
    first.stop()
    second = stage.run("--exec", f"cat {stage.directory}/said.json")
    assert kept.read_bytes() == before
    second.stop()
    # A key that was revoked meanwhile is replaced.
    proof = stage.rk.receipts.get(shown["artifact.ready"].event_id).offline
    sender = json.loads(proof.wire)["sender"]
    key_id = sender.removeprefix("runner:")
    stage.rk.keys.revoke(stage.server.workspace_id, key_id)
    third = stage.run("--exec", f"cat {stage.directory}/said.json")
    stage.ends(stage.task(outputs=["a"]), "completed")
    assert kept.read_bytes() != before
    assert third.stop() == 0
