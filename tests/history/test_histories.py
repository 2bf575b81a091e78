"""Servers are killed and frozen under load, and what their clients saw is held against the ledger.

The check shares no code with the server: it reads the SQLite file with SQL of its own and folds claims by itself.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.harness.acts import until
from tests.history.check import check_history
from tests.history.cluster import run_faults
from tests.history.ledger_file import read_ledger

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
# By number of servers: how many are killed and frozen. Together 50 and 10, at the large size 1,000 and 200.
FAULTS = {1: (334, 66), 2: (333, 67), 4: (333, 67)} if LONG else {1: (16, 3), 2: (17, 3), 4: (17, 4)}
SEED = 13


@pytest.mark.parametrize("servers", FAULTS)
def test_what_clients_saw_is_what_the_ledger_says(tmp_path: Path, servers: int, record_property: Any) -> None:
    kills, freezes = FAULTS[servers]
    faults = ["kill"] * kills + ["freeze"] * freezes
    Random(SEED).shuffle(faults)
    # Where others go on while one is down, fewer clients make as many calls between two faults.
    run = run_faults(tmp_path, servers, faults, seed=SEED + servers, workers=8 // servers + 1)
    ledger = read_ledger(run.data / "redkey.db")
    findings, calls = check_history(run.lines(), ledger)
    assert findings == []
    assert run.followed[: run.head] == list(range(1, run.head + 1)), "a follower missed a record, or saw one twice"
    _is_whole(run.data)
    answered = [call for call in calls if call.status]
    retried = sum(call.tries > 1 for call in answered)
    assert retried >= kills / 3, "the kills hit no call"
    text = (
        f"{servers} server processes, {kills} kills, {freezes} freezes: {len(answered):,} answered calls "
        f"({retried} sent again), {len(ledger.wires):,} records, {ledger.checkpoints} checkpoints, 0 findings"
    )
    record_property("proven", f"histories: {text}")
    record_property("total kills of servers under load", kills)
    record_property("total freezes of servers under load", freezes)
    record_property("total calls held against the ledger by independent code", len(answered))


def test_servers_that_start_together_begin_one_workspace(tmp_path: Path) -> None:
    serve = [sys.executable, "-m", "redkey", "serve", "--data", str(tmp_path / "data"), "--port", "0", "--ready-file"]
    ready = [tmp_path / f"ready{number}" for number in range(3)]
    servers = [subprocess.Popen([*serve, str(path)], stdout=subprocess.DEVNULL) for path in ready]
    try:
        until(lambda: all(path.exists() for path in ready), 60)
        (workspace_id,) = {json.loads(path.read_text())["workspaceId"] for path in ready}
        assert workspace_id == json.loads((tmp_path / "data" / "credentials.json").read_text())["workspaceId"]
    finally:
        for server in servers:
            server.kill()
            server.wait()
    assert read_ledger(tmp_path / "data" / "redkey.db").findings == []


def _is_whole(data: Path) -> None:
    """The checks that an operator has."""
    for command in (["fsck", str(data)], ["usage", "reconcile", "--data", str(data)]):
        done = subprocess.run(
            [sys.executable, "-m", "redkey", *command], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 differences" in done.stdout


@pytest.mark.parametrize("name", ["check.py", "ledger_file.py"])
def test_the_check_shares_no_code_with_the_server(name: str) -> None:
    tree = ast.parse(Path(__file__).with_name(name).read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    ours = {module for module in imported if module.split(".")[0] not in sys.stdlib_module_names}
    assert ours <= {"tests.history.ledger_file"}
