"""Virtual environments without a network: wheels of this tree, with links to the dependencies that they declare."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
# The sources of each distribution, besides its pyproject.toml.
TREE = ("src", "contracts", "definitions", "examples/podcast", "fixtures", "schemas", "sdk/python")
FILES = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")


def copy_tree(folder: Path) -> Path:
    """Copy the sources: a build then needs no write access to the checkout, and edits do not disturb it."""
    for name in TREE:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


class Environment:
    """A new virtual environment with some wheels and their declared dependencies, and nothing else."""

    def __init__(self, place: Path, *wheels: Path) -> None:
        venv.create(place, with_pip=False, symlinks=True)
        self.python = place / "bin" / "python"
        (self.packages,) = (place / "lib").glob("python*/site-packages")
        install = ["--quiet", "--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", *install, *map(str, wheels)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        ours = [PathDistribution(path) for path in self.packages.glob("*.dist-info")]
        self._linked = {str(one.metadata["Name"]).lower() for one in ours}
        for one in ours:
            self._link_dependencies(one.requires or [], extras=frozenset())

    def _link_dependencies(self, requirements: list[str], extras: frozenset[str]) -> None:
        for requirement in map(Requirement, requirements):
            wanted = any(
                requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
            )
            name = requirement.name.lower()
            if not wanted or name in self._linked:
                continue
            self._linked.add(name)
            found = distribution(requirement.name)
            assert requirement.specifier.contains(found.version), f"{requirement} is not {found.version}"
            for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
                if not (self.packages / top).exists():
                    (self.packages / top).symlink_to(str(found.locate_file(top)))
            self._link_dependencies(found.requires or [], frozenset(requirement.extras))
