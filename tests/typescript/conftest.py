"""The TypeScript SDK under test: compiled once for a run, and run by Node against real servers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness.server import Server, serving
from tools.node import SDK, Node, find_node, why_not

PATIENCE_SECONDS = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker compiles once and runs everything here; without Node, say why nothing ran."""
    reason = why_not()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("typescript"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=f"the TypeScript SDK was not tested: {reason}"))


@dataclass(frozen=True)
class Compiled:
    """The SDK and its tests as JavaScript."""

    folder: Path
    node: Node

    def run(self, script: str, *arguments: str, **environment: str) -> str:
        """Run a compiled script of `test/` to its end: what it printed."""
        done = subprocess.run(
            self.command(script, *arguments),
            env=clean(**environment),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{script} failed:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def command(self, script: str, *arguments: str) -> list[str]:
        # A test that hangs is named, long before the suite is given up.
        flags = ["--test", "--test-timeout=60000"] if script.endswith(".test") else []
        return [self.node.node, "--disable-warning=ExperimentalWarning", *flags, self.path(script), *arguments]

    def path(self, script: str) -> str:
        return str(self.folder / "test" / f"{script}.js")

    def asked(self, script: str, question: Any, tmp_path: Path) -> Any:
        """What a script answers to a question, both as JSON files."""
        told, answer = tmp_path / "question.json", tmp_path / "answer.json"
        told.write_text(json.dumps(question))
        self.run(script, str(told), str(answer))
        return json.loads(answer.read_text())


def clean(**environment: str) -> dict[str, str]:
    """The environment without what could name another server."""
    return {**{key: value for key, value in os.environ.items() if not key.startswith("REDKEY_")}, **environment}


def compile_with(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of the two compilers in the folder of the SDK."""
    node = find_node()
    assert node is not None
    command = [node.node, str(SDK / "node_modules" / package / "bin" / "tsc"), *arguments]
    return subprocess.run(command, cwd=SDK, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder, node = tmp_path_factory.mktemp("typescript"), find_node()
    assert node is not None
    done = compile_with("typescript7", "-p", "tsconfig.test.json", "--outDir", str(folder))
    assert done.returncode == 0, done.stdout
    (folder / "package.json").write_text('{"type": "module"}')
    return Compiled(folder, node)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found
