"""The files of `deploy`: what they name exists, and nothing in them runs with more rights than it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
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


def test_what_the_image_copies_is_enough_to_build_both_wheels(tmp_path: Path) -> None:
    """The steps of the image's first stage with this interpreter, on nothing but the files that it copies."""
    ignored = shutil.ignore_patterns("__pycache__")
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *names, target = line.split()[1:]
            for name in names:
                into = tmp_path / "src" / (name if target == "./" else target)
                into.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, into, ignore=ignored)
                else:
                    shutil.copy(ROOT / name, into)
    for project in ("sdk/python", "."):
        built = subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path / "dist"), project],
            cwd=tmp_path / "src",
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    assert {path.name.split("-")[0] for path in (tmp_path / "dist").glob("*.whl")} == {"redkey_client", "redkey"}


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
