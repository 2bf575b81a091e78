"""`redkey task progress`, and where what it says is seen."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from os import environ

import pytest

from redkey.client import Claimed, RedKey
from redkey.errors import Conflict
from tests.cli.test_daily_commands import PATIENCE_SECONDS, _call, _does
from tests.harness.acts import until
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


def _run_of(rk: RedKey, name: str) -> tuple[str, str]:
    """A run with one task, and the claim of the agent that has it."""
    with suppress(Conflict):
        rk.roles.create("writer", id="writer")
    agent = rk.agents.register(card={"name": name, "description": "Writes.", "version": "1"}).agent_id
    rk.roles.grant("writer", agent)
    run = rk.workflows.start("work", plan=plan_of(step("page"))).workflow_id
    claimed = rk.tasks.claim(rk.workflows.state(run).tasks[0].task_id, agent, lease_seconds=3600)
    assert isinstance(claimed, Claimed)
    return run, claimed.claim_id


def test_a_run_shows_the_progress_of_its_tasks(server: Server, rk: RedKey) -> None:
    run, claim_id = _run_of(rk, "wim")
    rk.claims.report_progress(claim_id, "Half.", percent=5)
    assert "5% · Write page · Half." in _does(server, "workflow", "show", run)
    rk.claims.complete(claim_id)


@pytest.mark.parametrize("what", ["task", "workflow", "queue"])
def test_watching_without_a_terminal_prints_what_was_said(server: Server, rk: RedKey, what: str) -> None:
    """Each report with its own text, although a later one has replaced it in the task."""
    run, claim_id = _run_of(rk, f"bob-{what}")
    name = {"task": rk.workflows.state(run).tasks[0].task_id, "workflow": run, "queue": "work"}[what]
    rk.claims.report_progress(claim_id, "Begun.", percent=1)
    environment = {**environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    command = [sys.executable, "-m", "redkey", what, "watch", name]
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    try:
        while what == "queue" and not select.select([watcher.stdout], [], [], 0.1)[0]:
            # A queue is followed from now on: an event shows that the command has begun.
            rk.tasks.create("work", title="Another")
        # Progress is recorded at most once a second.
        until(lambda: rk.claims.report_progress(claim_id, SAID, percent=60).recorded, PATIENCE_SECONDS)
        rk.claims.complete(claim_id)
        seen: list[str] = []
        while not seen or "task.complete " not in seen[-1]:
            seen.append(watcher.stdout.readline())
            assert seen[-1], f"the command ended: {seen}"
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()
    reports = [place for place, line in enumerate(seen) if "task.progress" in line]
    said = [seen[place + 1].strip() for place in reports]
    assert said == ([f"60% {SAID}"] if what == "queue" else ["1% Begun.", f"60% {SAID}"])
    assert "percent=60" in seen[reports[-1]]
    if what != "queue":
        whole = _does(server, what, "watch", name)
        assert whole.count(f"60% {SAID}") == 1, "what has ended is shown to its last event"
        assert f"{what}.complete" in whole


@pytest.mark.parametrize("what", ["workflow", "queue"])
def test_on_a_terminal_a_watched_run_or_queue_shows_the_progress(server: Server, rk: RedKey, what: str) -> None:
    run, claim_id = _run_of(rk, f"eva-{what}")
    ours, theirs = pty.openpty()
    environment = {**environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    environment |= {"TERM": "xterm", "COLUMNS": "160", "LINES": "24"}
    command = [sys.executable, "-m", "redkey", what, "watch", run if what == "workflow" else "work"]
    watcher = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while b"claimed" not in seen:
            seen += os.read(ours, 65536)
        rk.claims.report_progress(claim_id, SAID, percent=60)
        while f"60% · Write page · {SAID}".encode() not in seen:
            seen += os.read(ours, 65536)
        rk.claims.complete(claim_id)
    finally:
        watcher.kill()
        watcher.wait()
        os.close(ours)


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
