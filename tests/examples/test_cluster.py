"""The compose file of several servers: its settings are settings, and the load balancer knows every server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from redkey.config import load

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "cluster"
BESIDE = {"REDKEY_STORE_KEY", "REDKEY_BOOTSTRAP_KEY"}


def test_every_variable_of_the_compose_file_is_a_setting() -> None:
    document = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    for name in ("north", "east", "south"):
        variables = document["services"][name]["environment"]
        config = load(None, {name: value for name, value in variables.items() if name not in BESIDE}, {})
        assert config.store.startswith("postgresql://")
        assert variables.keys() >= BESIDE
    # Each server has a data directory of its own.
    assert len({str(document["services"][name]["volumes"]) for name in ("north", "east", "south")}) == 3


def test_the_load_balancer_has_every_server_and_asks_whether_it_is_ready() -> None:
    document = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    balancer = (FOLDER / "haproxy.cfg").read_text()
    servers = {
        name for name, service in document["services"].items() if "REDKEY_STORE" in service.get("environment", {})
    }
    assert set(re.findall(r"^  server (\w+) \1:8700$", balancer, re.MULTILINE)) == servers == {"north", "east", "south"}
    assert "GET /readyz" in balancer


@pytest.mark.xdist_group("cluster")
def test_the_demo_kills_a_server_and_loses_nothing() -> None:
    command = [sys.executable, "-m", "tools.demo_cluster", "--tasks", "12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing was lost." in done.stdout
