"""Every door parses, calls a use case and renders; it accesses no store, world or coordinator.

The import contract in pyproject.toml covers what a door imports; these tests cover what it reaches through `Caller`.
"""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {"store", "coordinator", "peek", "world", "flights"}
CONTRACT = "A door parses, calls a use case and renders: it knows no store, no world and no coordinator"
# The modules behind the use cases.
BEHIND = {
    "redkey.hedera",
    "redkey.ledger.ports",
    "redkey.readmodel",
    "redkey.reducers",
    "redkey.services.acts",
    "redkey.services.commit_path",
    "redkey.services.coordinator",
    "redkey.services.run_unit",
    "redkey.services.unit_of_work",
    "redkey.services.worlds",
    "redkey.stores",
}


def contract() -> dict[str, list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found: dict[str, list[str]] = next(one for one in contracts if one["name"] == CONTRACT)
    return found


DOORS = contract()["source_modules"]


def touched(text: str) -> set[str]:
    """Return the forbidden attributes that a module reads."""
    nodes = ast.walk(ast.parse(text))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} & FORBIDDEN


def test_the_contract_covers_every_door_without_exception() -> None:
    assert set(DOORS) >= {"redkey.api", "redkey.bus", "redkey.a2a", "redkey.mcp", "redkey.studio"}
    assert set(contract()["forbidden_modules"]) >= BEHIND
    assert not contract().get("ignore_imports")
    for name in contract()["forbidden_modules"]:
        # A module that has moved would be forbidden no more.
        assert importlib.util.find_spec(name) is not None, name


@pytest.mark.parametrize("door", DOORS)
def test_no_handler_looks_behind_the_use_cases(door: str) -> None:
    folder = Path(importlib.import_module(door).__path__[0])
    modules = sorted(folder.rglob("*.py"))
    assert len(modules) > 1
    assert {str(path.relative_to(folder)): found for path in modules if (found := touched(path.read_text()))} == {}


def test_an_access_is_found() -> None:
    assert touched("def handler(caller): return caller.means.store.rows") == {"store"}
