"""A fresh clone on a machine with Python, make and git alone: `make demo` needs no other step."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900


@pytest.mark.skipif(os.environ.get("REDKEY_TEST_LONG") != "1", reason="installs everything anew; REDKEY_TEST_LONG=1")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone")
def test_make_demo_works_in_a_fresh_clone_with_an_empty_home(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    # Nothing of the shell that runs the tests: no virtual environment, no settings, no cache.
    environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["make", "demo"], cwd=clone, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "refused: not every level that was asked for holds" in done.stdout
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert status.stdout == ""
