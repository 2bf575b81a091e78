"""The installer of a checkout: what it says to an old Python, while it installs, and when pip fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALL = ROOT / "tools" / "install.py"


def _run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_an_old_python_is_named_with_the_next_step_and_nothing_is_created(tmp_path: Path) -> None:
    old = f"import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path({str(INSTALL)!r}, run_name='__main__')"
    done = _run("-c", old, "requirements-run.lock", cwd=tmp_path)
    assert done.returncode == 1
    assert f"needs Python 3.11 or newer, and {sys.executable} is 3.9.2." in done.stderr
    assert "PYTHON=python3.12" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_phases_are_shown_and_a_failure_of_pip_is_shown_whole(tmp_path: Path) -> None:
    lock = tmp_path / "broken.lock"
    lock.write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    (tmp_path / "pip.conf").write_text("[global]\nno-index = true\n")
    place = tmp_path / "env"
    done = subprocess.run(
        [sys.executable, str(INSTALL), str(lock), str(place)],
        env={"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stdout.startswith(f"Creating {place} ...\n")
    assert "No matching distribution found for no-such-package==1.0" in done.stderr
    assert "Next: check the network, then run the same command again" in done.stderr
