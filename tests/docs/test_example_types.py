"""The example programs, and the workers that README shows, pass `mypy --strict` as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import blocks

ROOT = Path(__file__).resolve().parents[2]
# Frameworks that only the examples need: mypy treats what is not installed as Any. Their classes and decorators are of
# type Any too then, and such a base class or decorator is no error of the example.
LENIENT = ("--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-decorators")


def test_examples_and_the_workers_of_readme_are_strictly_typed(tmp_path: Path) -> None:
    programs = sorted((ROOT / "examples").rglob("*.py"))
    assert len(programs) > 8
    for page in ("README.md", "sdk/python/README.md"):
        (worker,) = (block for block in blocks(ROOT / page) if block.file == "worker.py")
        programs.append(tmp_path / f"{page.replace('/', '_').lower().removesuffix('.md')}_worker.py")
        programs[-1].write_text(worker.text)
    command = [sys.executable, "-m", "mypy", "--strict", *LENIENT, "--config-file", "", "--cache-dir", str(tmp_path)]
    # The programs are checked by name, without the tree around them, as a user's own would be.
    done = subprocess.run(
        [*command, "--explicit-package-bases", *map(str, programs)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
