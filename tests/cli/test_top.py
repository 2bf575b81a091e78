"""`redkey top`: what is drawn, for people, for pipes and for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from redkey.client import RedKey
from tests.cli.test_daily_commands import PATIENCE_SECONDS, _does
from tests.harness.server import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two tasks on a queue, of which ada works on one."""
    with serving(tmp_path_factory.mktemp("top")) as running, RedKey(running.url, running.key) as rk:
        agent = rk.agents.register(card={"name": "ada"}).agent_id
        rk.queues.create("work", id="work")
        for title in ("first", "second"):
            rk.tasks.create("work", title=title)
        assert rk.queues.claim_next("work", agent, lease_seconds=3600) is not None
        yield running


def test_a_picture_has_queues_agents_and_leases(server: Server) -> None:
    found = json.loads(_does(server, "top", "--json"))
    (queue,) = found["queues"]
    assert (queue["queueId"], queue["ready"], queue["inProgress"], queue["blocked"]) == ("queue_work", 1, 1, 0)
    assert [(agent["slug"], agent["state"], agent["claims"]) for agent in found["agents"]] == [("ada", "active", 1)]
    assert [(lease["agent"], lease["title"]) for lease in found["leases"]] == [("ada", "first")]
    lines = [re.split(r"  +", line) for line in _does(server, "top").splitlines() if line]
    # The glossary's words, which Studio shows too.
    assert lines[0] == ["QUEUE", "STATE", "WAITING", "READY", "IN PROGRESS", "BLOCKED", "OLDEST"]
    assert lines[1][:6] == ["work", "open", "0", "1", "1", "0"]


def test_on_a_terminal_it_is_drawn_until_it_is_stopped(server: Server) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    environment |= {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-m", "redkey", "top"]
    process = subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        # Rates are known from the second picture on.
        while b"events/s" not in seen or seen.count(b"QUEUE") < 2:
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                if not os.read(master, 4096):
                    break
            except OSError:
                break
        assert process.wait(PATIENCE_SECONDS) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert b"1 in progress" in seen
    assert b"first" in seen
    assert b"Traceback" not in seen
