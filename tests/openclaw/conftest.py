"""The OpenClaw plugin under test: bundled once for a run, and run by Node against real servers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.typescript.conftest import PATIENCE_SECONDS
from tools.node import ROOT, SDK, Node, find_node, why_not

PLUGIN = ROOT / "plugins" / "openclaw"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs everything here; without Node, say why nothing ran."""
    reason = why_not()
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("openclaw"))
            if reason:
                item.add_marker(pytest.mark.skip(reason=f"the OpenClaw plugin was not tested: {reason}"))


def bundled(node: Node, source: str, target: Path) -> Path:
    """A file of the plugin with the SDK in it, as `npm run build` makes it."""
    command = [node.node, str(SDK / "node_modules" / "esbuild" / "bin" / "esbuild"), source, "--bundle", "--minify"]
    command += ["--platform=node", "--format=esm", "--external:openclaw", f"--outfile={target}"]
    command += [f"--alias:redkey={SDK / 'src' / 'index.ts'}", "--log-level=warning"]
    done = subprocess.run(command, cwd=PLUGIN, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="session")
def node() -> Node:
    found = find_node()
    assert found is not None
    return found
