"""The compose file of several servers: its settings are settings, and the load balancer knows every server."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from redkey.config import load

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
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
