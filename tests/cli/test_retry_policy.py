"""The retry policy of a workspace: set on the command line or by the API, on the ledger, and the default of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from redkey.client import RedKey
from tests.cli.test_daily_commands import _does
from tests.harness.server import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("retries")) as running:
        yield running


@pytest.mark.parametrize("door", ["command line", "API"])
def test_tasks_without_a_policy_of_their_own_follow_that_of_the_workspace(server: Server, door: str) -> None:
    agent = door.replace(" ", "-").lower()
    _does(server, "agent", "register", agent, "--no-key")
    # The command creates the queue that the SDK expects to be there.
    _does(server, "task", "create", "--title", "First")
    with RedKey(server.url, server.key) as rk:
        if door == "API":
            (place,) = rk.workspaces.list()
            rk.workspaces.set_policy(place.workspace_id, retry={"maxAttempts": 3, "delaySeconds": 900})
            told, attempts = "3 attempts, 900 s before the second", 3
        else:
            _does(server, "workspace", "policy", "--retry", "attempts=2,delay=600,backoff=1,jitter=0")
            told, attempts = "2 attempts, 600 s before the second", 2
        assert told in _does(server, "workspace", "policy")
        event = json.loads(_does(server, "events", "tail", "-n", "1", "--json", "--type", "workspace.policy_set"))
        assert event["data"]["retry"]["attempts"] == attempts
        task = rk.tasks.create("default", title="T") if door == "API" else None
        task_id = task.task_id if task else _does(server, "task", "create", "--title", "T").strip()
        own = _does(server, "task", "create", "--title", "Own", "--retry", "attempts=1").strip()
        for one in (task_id, own):
            claim = _does(server, "claim", "take", one, "--agent", agent, "-q").strip()
            _does(server, "claim", "fail", claim, "--reason", "No answer.")
        assert rk.tasks.get(own).state == "failed"
        found = rk.tasks.get(task_id)
        assert (found.state, found.attempt, found.max_attempts) == ("created", 2, attempts)
        assert [one.code for one in rk.tasks.explain(task_id).reasons] == ["retry_pause"]
