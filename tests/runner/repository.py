"""A git repository for tests, on disk."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "test@example.com" for who in ("AUTHOR", "COMMITTER")},
}


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), *arguments], env=_ENVIRONMENT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repository(directory: Path) -> Path:
    """A repository with one commit on `main`."""
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    (directory / "README.md").write_text("hello\n")
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "Begin")
    return directory
