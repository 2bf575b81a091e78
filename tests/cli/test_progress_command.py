"""`redkey task progress`, and where what it says is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from os import environ

import pytest

from redkey.client import Claimed, RedKey
from tests.cli.test_daily_commands import PATIENCE_SECONDS, _call, _does
from tests.harness.runs import plan_of, step
from tests.harness.server import Server, serving

SAID = "Three of five sources read."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("progress")) as running:
        yield running


@pytest.fixture(scope="module")
def rk(server: Server) -> Iterator[RedKey]:
    with RedKey(server.url, server.key) as client:
        client.queues.create("work", id="work")
        yield client


def _held(rk: RedKey, name: str, title: str) -> str:
    agent = rk.agents.register(card={"name": name, "description": "Works.", "version": "1"}).agent_id
    claimed = rk.tasks.claim(rk.tasks.create("work", title=title).task_id, agent, lease_seconds=3600)
    assert isinstance(claimed, Claimed)
    return claimed.task_id


def test_a_report_is_seen_in_lists_views_and_the_live_picture(server: Server, rk: RedKey) -> None:
    task_id = _held(rk, "ada", "Research")
    assert _does(server, "task", "progress", task_id, SAID, "--percent", "60").strip() == f"{task_id} has the report"
    assert f"60% · Research · {SAID}" in _does(server, "task", "list")
    assert f"60% {SAID} (" in _does(server, "task", "show", task_id)
    assert f"60% · Research · {SAID}" in _does(server, "top")
    (lease,) = [one for one in json.loads(_does(server, "top", "--json"))["leases"] if one["taskId"] == task_id]
    assert (lease["percent"], lease["progress"], lease["title"]) == (60, SAID, "Research")
    listed = [json.loads(line) for line in _does(server, "task", "list", "--json").splitlines()]
    (shown,) = [one["progress"] for one in listed if one["taskId"] == task_id]
    assert (shown["percent"], shown["text"]) == (60, SAID)
    claim = rk.tasks.get(task_id).claim
    assert claim is not None
    rk.claims.release(claim.claim_id)
    assert rk.tasks.get(task_id).progress is None, "a task that waits for its next claim has no progress"


def test_a_run_shows_the_progress_of_its_tasks(server: Server, rk: RedKey) -> None:
    rk.roles.create("writer", id="writer")
    agent = rk.agents.register(card={"name": "wim", "description": "Writes.", "version": "1"}).agent_id
    rk.roles.grant("writer", agent)
    run = rk.workflows.start("work", plan=plan_of(step("page"))).workflow_id
    claimed = rk.tasks.claim(rk.workflows.state(run).tasks[0].task_id, agent, lease_seconds=3600)
    assert isinstance(claimed, Claimed)
    rk.claims.report_progress(claimed.claim_id, "Half.", percent=5)
    assert "5% · Write page · Half." in _does(server, "workflow", "show", run)


def test_watching_without_a_terminal_prints_what_was_said(server: Server, rk: RedKey) -> None:
    task_id = _held(rk, "bob", "Count")
    environment = {**environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    command = [sys.executable, "-m", "redkey", "task", "watch", task_id]
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    while "task.claimed" not in watcher.stdout.readline():
        pass
    claim = rk.tasks.get(task_id).claim
    assert claim is not None
    rk.claims.report_progress(claim.claim_id, SAID, percent=60)
    line = watcher.stdout.readline()
    assert "task.progress" in line
    assert "percent=60" in line
    assert watcher.stdout.readline().strip() == f"60% {SAID}"
    rk.claims.complete(claim.claim_id)
    watcher.stdout.read()
    watcher.stdout.close()
    assert watcher.wait(PATIENCE_SECONDS) == 0


def test_what_is_wrong_is_said_with_the_next_step(server: Server, rk: RedKey) -> None:
    free = rk.tasks.create("work", title="Free").task_id
    nobody = _call(server, "task", "progress", free, "Half.")
    assert nobody.exit_code == 1
    assert f"{free} is available: no agent holds it" in nobody.output
    assert f"redkey claim take {free} --agent AGENT" in nobody.output
    empty = _call(server, "task", "progress", free)
    assert (empty.exit_code, "give a text, --percent, or both" in empty.output) == (2, True)
    assert _call(server, "task", "progress", free, "Half.", "--percent", "101").exit_code == 2
    held = _held(rk, "cat", "Twice")
    _does(server, "task", "progress", held, "One.")
    claim = rk.tasks.get(held).claim
    assert claim is not None
    said = [rk.claims.report_progress(claim.claim_id, "Two.") for _ in range(50)]
    assert any(one.reason == "too_often" and 0 < (one.retry_after_seconds or 0) <= 1 for one in said)
