"""Repositories that an operator names by `--repo`: a mistyped path is told at the start and not at the first task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from redkey.errors import WorkplaceRefused

# https://host/path, or git's short form of ssh, host:path.
_REMOTE = re.compile(r"[a-z+]+://|[^/]+:")


def check_repositories(prefixes: Sequence[str]) -> None:
    """WorkplaceRefused when a prefix is a path of this machine and leads to no repository."""
    for prefix in prefixes:
        if not prefix or _REMOTE.match(prefix):
            continue
        folder = Path(prefix)
        if not folder.is_dir():
            raise WorkplaceRefused(f"there is no repository {prefix[:200]!r}", code="repository_missing")
        if not is_clone(folder) and not any(is_clone(one) for one in folder.iterdir()):
            raise WorkplaceRefused(f"{folder.resolve()} is not the top of a git repository", code="repository_missing")


def is_clone(repository: Path) -> bool:
    """Whether a directory is the top of a clone, with a working tree or without."""
    return (repository / ".git").exists() or (repository / "HEAD").is_file()
