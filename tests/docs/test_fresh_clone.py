"""A fresh clone: README leads from it to a first finished task in three commands, and `make demo` needs no other step.

The ordinary run lends the clone the environment that runs the tests; the long run installs everything anew, by what a
machine with Python, make and git has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from redkey.client import RedKey
from tests.docs.pages import Block, Reader, blocks
from tests.harness.acts import until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900
LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone")


def _clone(folder: Path) -> Path:
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    return clone


def _lend_environment(clone: Path) -> None:
    """Give the clone an environment with the packages of this one and its own sources, as `make install` would."""
    venv.create(clone / ".venv", with_pip=False, symlinks=True)
    (packages,) = (clone / ".venv" / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text(f"{clone / 'src'}\n{sysconfig.get_path('purelib')}\n")
    command = clone / ".venv" / "bin" / "redkey"
    command.write_text(f"#!{clone}/.venv/bin/python\nimport sys; from redkey.cli import main; sys.exit(main())\n")
    command.chmod(0o755)
    (clone / ".venv" / ".run").touch()


def _three_commands(clone: Path) -> list[Block]:
    """The blocks of README from `make run` to the worker."""
    shell = [block for block in blocks(clone / "README.md") if block.language == "sh"]
    first = next(place for place, block in enumerate(shell) if block.text == "make run\n")
    return shell[first : first + 3]


def test_readme_leads_from_a_clone_to_a_finished_task_in_three_commands(tmp_path: Path) -> None:
    clone = _clone(tmp_path)
    commands = _three_commands(clone)
    assert [len(block.text.splitlines()) for block in commands] == [1, 1, 1]
    if not LONG:
        _lend_environment(clone)
    reader = Reader(tmp_path)
    reader.folder, reader.patience_seconds = clone, PATIENCE_SECONDS
    reader.environment["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    reader.environment.pop("PYTHONPATH", None)
    if not LONG:
        reader.environment["PATH"] = f"{Path(sys.executable).parent}:{reader.environment['PATH']}"
    try:
        for block in commands:
            reader.run_as_written(block)
        with RedKey(data=clone / ".redkey") as rk:
            until(lambda: len(list(rk.tasks.list("default", state="completed"))) == 1, PATIENCE_SECONDS)
    finally:
        reader.leave()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert status.stdout == ""


@pytest.mark.skipif(not LONG, reason="installs everything anew; REDKEY_TEST_LONG=1")
def test_make_demo_works_in_a_fresh_clone_with_an_empty_home(tmp_path: Path) -> None:
    clone, home = _clone(tmp_path), tmp_path / "home"
    home.mkdir()
    # Nothing of the shell that runs the tests: no virtual environment, no settings, no cache.
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["make", "demo"], cwd=clone, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "refused: not every level that was asked for holds" in done.stdout
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert status.stdout == ""
