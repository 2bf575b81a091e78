"""The files of a commit in a separate folder, to measure them beside this checkout."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.served import ROOT


class UnknownCommit(Exception):
    """No commit of this repository has that name."""


def commit_of(revision: str) -> str:
    """The short name of the commit that a revision names."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--short", f"{revision}^{{commit}}"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        raise UnknownCommit(f"There is no commit {revision!r} in this repository; see `git log --oneline`.")
    return found.stdout.strip()


def is_changed() -> bool:
    """Whether this checkout differs from its commit."""
    command = ["git", "status", "--porcelain"]
    return bool(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip())


@contextmanager
def files_of(commit: str) -> Iterator[Path]:
    """A temporary folder with the files of a commit.

    They are unpacked from an archive and not checked out as a git worktree, so nothing is left in the repository even
    if this process is killed.
    """
    with tempfile.TemporaryDirectory(prefix="redkey-bench-tree-") as folder:
        with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
            unpacked = subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout)
        if archive.returncode or unpacked.returncode:
            raise RuntimeError(f"the files of {commit} could not be unpacked")
        yield Path(folder)
