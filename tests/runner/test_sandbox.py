"""The sandbox: only the working directory is writable, nothing hidden is read, no network unless it is allowed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from redkey.errors import ConfigRefused
from redkey.runner.sandbox import Bubblewrap, Container
from tests.harness.scene import Scene, output, until
from tests.runner.processes import gone, pids
from tests.runner.repository import git, make_repository

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def test_without_bubblewrap_it_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigRefused) as refused:
        Bubblewrap()
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
    # Alone, --sandbox means offline.
    options = ["--sandbox", "--repo", str(origin), "--merge-into", "main", "--check", "test -e x.txt"]
    stage.run("--exec", script, *options)
    assert stage.ends(stage.task(), "completed").summary == "Committed."
    assert git(origin, "show", "main:x.txt") == "x"


# A client of a container engine, as far as the runner knows one: it writes down how it is called, and runs the command
# of a container here, with nothing but the variables that are passed. No engine is needed to see what is asked of it.
CLIENT = """
import json, os, subprocess, sys
words = sys.argv[1:]
with open({log!r}, "a") as out:
    out.write(json.dumps(words) + "\\n")
if words[0] == "run":
    at = words.index("agent-image")
    names = [words[i + 1] for i, word in enumerate(words) if word == "--env"]
    environment = {{"PATH": "/usr/bin:/bin", **{{name: os.environ[name] for name in names}}}}
    sys.exit(subprocess.run(words[at + 1 :], env=environment, cwd=words[words.index("--workdir") + 1]).returncode)
"""


def _client(directory: Path) -> tuple[str, Path]:
    """A PATH whose first docker is the stand-in, and where it writes down its calls."""
    log, folder = directory / "calls", directory / "bin"
    folder.mkdir()
    (folder / "client.py").write_text(CLIENT.format(log=str(log)))
    (folder / "docker").write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {folder}/client.py "$@"\n')
    (folder / "docker").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}", log


def _calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_container_gets_its_directory_and_is_removed(stage: Scene) -> None:
    path, log = _client(stage.directory)
    script = f"cat > /dev/null; echo $TMPDIR > out.txt; echo '{output()}'"
    runner = stage.run("--exec", script, "--sandbox", "offline", "--sandbox-image", "agent-image", PATH=path)
    task = stage.ends(stage.task(), "completed")
    assert [one.name for one in task.artifacts] == ["out.txt"]
    scratch = stage.rk.content.get(task.artifacts[0].sha256).decode().strip()
    (started,) = [words for words in _calls(log) if words[0] == "run"]
    name = started[started.index("--name") + 1]
    volumes = [started[at + 1] for at, word in enumerate(started) if word == "--volume"]
    assert volumes[0] == f"{scratch}:{scratch}"
    assert len(volumes) == 2
    assert volumes[1].startswith(str(stage.directory / "work-quinn" / "places"))
    options = " ".join(started)
    for wanted in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", f"--user {os.getuid()}:"):
        assert wanted in options
    assert "HOME" not in [started[at + 1] for at, word in enumerate(started) if word == "--env"]
    assert ["rm", "--force", name] in _calls(log)
    assert runner.stop() == 0


def test_a_container_is_removed_when_its_runner_is_killed(stage: Scene) -> None:
    path, log = _client(stage.directory)
    script = f"echo $$ > {stage.directory}/pids; sleep 600"
    options = ["--sandbox", "online", "--sandbox-image", "agent-image"]
    runner = stage.run("--exec", script, *options, PATH=path)
    stage.task()
    (child,) = pids(stage.directory / "pids", 1)
    runner.stop(signal.SIGKILL)
    assert gone(child)
    until(lambda: [words for words in _calls(log) if words[0] == "rm"])
    (started,) = [words for words in _calls(log) if words[0] == "run"]
    assert "--network bridge" in " ".join(started)


def test_an_engine_that_does_not_answer_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigRefused) as refused:
        Container("agent-image")
    assert refused.value.code == "sandbox_missing"
    (tmp_path / "docker").write_text("#!/bin/sh\necho no engine >&2; exit 1\n")
    (tmp_path / "docker").chmod(0o755)
    with pytest.raises(ConfigRefused, match="no engine"):
        Container("agent-image")
