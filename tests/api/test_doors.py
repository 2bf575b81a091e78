"""The HTTP layer parses, calls a use case and renders; it accesses no store, world or coordinator."""

from __future__ import annotations

import ast
from pathlib import Path

import redkey.api

FORBIDDEN = {"store", "coordinator", "peek", "world", "flights"}


def touched(path: Path) -> set[str]:
    """Return the forbidden attributes that a module reads."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} & FORBIDDEN


def test_no_handler_looks_behind_the_use_cases() -> None:
    modules = sorted(Path(redkey.api.__path__[0]).glob("*.py"))
    assert len(modules) > 10
    assert {path.stem: found for path in modules if (found := touched(path))} == {}
