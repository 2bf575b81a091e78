"""The examples do what they say, each against a real server and in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redkey.client import RedKey
from tests.harness.server import Server, serving

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS = 90


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


@pytest.fixture
def rk(server: Server) -> Iterator[RedKey]:
    with RedKey(server.url, server.key) as client:
        yield client


def _environment(**given: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    return {**clean, **given}


def _run(command: list[str], told: str = "", **environment: str) -> str:
    done = subprocess.run(
        command, input=told, env=_environment(**environment), capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _agent(rk: RedKey, server: Server, name: str, role: str) -> dict[str, str]:
    """An agent with a role, as its own process would know itself."""
    made = rk.agents.register(card={"name": name, "description": name, "version": "1"}, issue_key=True)
    rk.roles.grant(role, made.agent_id)
    return {"REDKEY_URL": server.url, "REDKEY_API_KEY": made.api_key, "REDKEY_AGENT_ID": made.agent_id}


def test_an_agent_in_shell_takes_every_task_with_curl_alone(server: Server, rk: RedKey) -> None:
    rk.queues.create("podcast")
    rk.roles.create("researcher")
    titles = ['Research "Piers" Gorman', "Research Ada \\ Chen", 'a","claimId":"clm_forged']
    tasks = [rk.tasks.create("podcast", title=title, required_roles=["researcher"]) for title in titles]
    me = _agent(rk, server, "shelly", "researcher")
    said = _run(["sh", str(EXAMPLES / "shell_agent.sh"), "podcast"], PATIENCE="1", LEASE_SECONDS="30", **me)
    assert said.count("won: ") == said.count("done: ") == len(titles)
    assert said.endswith("nothing to do\n")
    for task, title in zip(tasks, titles, strict=True):
        found = rk.tasks.get(task.task_id)
        assert (found.state, found.completed_by) == ("completed", me["REDKEY_AGENT_ID"])
        assert found.summary == f"Five facts about: {title}"


def test_an_agent_in_shell_tells_why_it_may_not(server: Server, rk: RedKey) -> None:
    rk.roles.create("researcher")
    me = _agent(rk, server, "shelly", "researcher")
    done = subprocess.run(
        ["sh", str(EXAMPLES / "shell_agent.sh"), "nowhere"], env=_environment(**me), capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "queue_not_found" in done.stdout + done.stderr


def test_a_worker_in_python_completes_what_it_can_and_rejects_what_it_cannot(server: Server, rk: RedKey) -> None:
    rk.queues.create("podcast")
    rk.roles.create("researcher")
    good = rk.tasks.create(
        "podcast", title="Research", required_roles=["researcher"], input={"guest": "Ada"}, outputs=["facts"]
    )
    bad = rk.tasks.create("podcast", title="Research", required_roles=["researcher"])
    me = _agent(rk, server, "pia", "researcher")
    command = [sys.executable, str(EXAMPLES / "python_worker.py"), "podcast", "researcher"]
    worker = subprocess.Popen(command, env=_environment(**me), stdout=subprocess.PIPE, text=True)
    left = {good.task_id, bad.task_id}
    for event in rk.events.follow(types=["task.complete", "task.failed"], after=0):
        left.discard(event.subject.id)
        if not left:
            break
    worker.send_signal(signal.SIGTERM)
    said, _ = worker.communicate(timeout=PATIENCE_SECONDS)
    assert (worker.returncode, said) == (0, "1 completed, 1 failed\n")
    done, failed = rk.tasks.get(good.task_id), rk.tasks.get(bad.task_id)
    assert [artifact.name for artifact in done.artifacts] == ["facts"]
    assert failed.failure is not None
    assert failed.failure.reason == "the input names no guest"


def test_two_machines_share_one_queue_and_every_task_is_done_once(server: Server, rk: RedKey) -> None:
    command = [sys.executable, str(EXAMPLES / "two_machines.py")]
    said = _run(command, REDKEY_URL=server.url, REDKEY_API_KEY=server.key)
    assert said.splitlines()[-1] == "12 of 12 tasks, each once"
    assert len(list(rk.ledger.query(type="task.complete"))) == 12


def test_a_human_sends_work_back_and_approves_the_second_attempt(server: Server, rk: RedKey) -> None:
    rk.queues.create("podcast")
    rk.roles.create("writer")
    task = rk.tasks.create("podcast", title="Write the intro", approval_gate=True, retry={"maxAttempts": 2})  # type: ignore[typeddict-item]
    me = _agent(rk, server, "gus", "writer")
    with RedKey(server.url, me["REDKEY_API_KEY"]) as gus:
        for draft, told, answer in (("Hi.", "n\nSay more.\n", "sent back, for"), ("Hi, all.", "y\n", "approved")):
            claim = gus.queues.claim_next("podcast", me["REDKEY_AGENT_ID"])
            gus.claims.complete(claim.claim_id, summary=draft)  # type: ignore[union-attr]
            said = _run(
                [sys.executable, str(EXAMPLES / "approve.py")], told, REDKEY_URL=server.url, REDKEY_API_KEY=server.key
            )
            assert draft in said
            assert answer in said
    found = rk.tasks.get(task.task_id)
    assert (found.state, found.attempt, found.summary, found.gate_id) == ("completed", 2, "Hi, all.", "")


def test_the_hedera_demo_anchors_an_event_and_verifies_its_receipt() -> None:
    said = _run([sys.executable, str(EXAMPLES / "hedera_demo.py")])
    assert "\nanchored: message " in said
    assert "\n  anchored   holds " in said
    assert ", 0 differences\n" in said


def test_every_example_is_tested() -> None:
    here = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh") and path.name not in here] == []
