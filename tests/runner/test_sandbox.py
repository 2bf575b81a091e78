"""The sandbox: only the working directory is writable, nothing hidden is read, no network unless it is allowed."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest

from redkey.errors import ConfigRefused
from redkey.runner.sandbox import Sandbox
from tests.harness.scene import Scene, output
from tests.runner.repository import git, make_repository

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def test_without_bubblewrap_it_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigRefused) as refused:
        Sandbox()
    assert refused.value.code == "sandbox_missing"


@pytest.fixture
def listening() -> object:
    """A port on the loopback that takes connections: the system does, before anybody accepts them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@needs_bwrap
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_an_agent_writes_in_its_directory_only(mode: str, stage: Scene, listening: int) -> None:
    # The script itself is the command, and the interpreter is the one behind the virtual environment: /tmp, where
    # files of tests and perhaps the whole checkout are, is empty inside.
    python = Path(sys.executable).resolve()
    outside = stage.directory / "outside"
    outside.mkdir()
    connect = f"import socket; socket.create_connection(('127.0.0.1', {listening}), 30)"
    script = f"""
echo inside > inside.txt
touch {outside}/written 2> /dev/null && echo 'wrote outside' >> said.txt
ls {stage.directory}/work-quinn/costs.sqlite > /dev/null 2>&1 && echo 'read the work directory' >> said.txt
{python} -c "{connect}" 2> /dev/null && echo 'connected' >> said.txt
[ "$(ls /proc | grep -c '^[0-9]')" -gt 20 ] && echo 'saw processes' >> said.txt
echo end >> said.txt
echo '{output()}'
"""
    stage.run("--exec", script, "--sandbox", mode)
    task = stage.ends(stage.task(), "completed")
    made = {one.name: stage.rk.content.get(one.sha256).decode() for one in task.artifacts}
    assert made["inside.txt"] == "inside\n"
    assert made["said.txt"].split("\n")[:-1] == (["end"] if mode == "offline" else ["connected", "end"])
    assert list(outside.iterdir()) == []


@needs_bwrap
def test_a_worktree_can_be_committed_to_from_inside(stage: Scene) -> None:
    origin = make_repository(stage.directory / "origin")
    script = f"echo x > x.txt && git add . && git commit -q -m X && echo '{output(summary='Committed.')}'"
    options = ["--repo", str(origin), "--merge-into", "main", "--check", "test -e x.txt", "--sandbox", "offline"]
    stage.run("--exec", script, *options)
    assert stage.ends(stage.task(), "completed").summary == "Committed."
    assert git(origin, "show", "main:x.txt") == "x"
