"""The files of `deploy`: what they name exists, and nothing in them runs with more rights than it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def test_the_image_copies_what_exists_and_runs_as_a_user_without_rights() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    ]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    assert "USER redkey" in lines[last:]
    assert lines.index("USER redkey") < next(number for number, line in enumerate(lines) if line.startswith("CMD "))


def test_the_compose_file_gives_the_server_no_rights_and_no_open_port() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    server = services["redkey"]
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    assert (server["read_only"], server["cap_drop"], "ports" in server) == (True, ["ALL"], False)
    assert list(services["proxy"]["depends_on"]) == ["redkey"]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    judge = shutil.which("systemd-analyze")
    if judge is None:
        pytest.skip("systemd-analyze is not here")
    program = shutil.which("true")
    unit = re.sub(r"ExecStart=\S+", f"ExecStart={program}", (DEPLOY / "redkey.service").read_text())
    (tmp_path / "redkey.service").write_text(unit)
    judged = subprocess.run(
        [judge, "verify", str(tmp_path / "redkey.service")], capture_output=True, text=True, timeout=60
    )
    assert (judged.returncode, judged.stderr) == (0, "")
