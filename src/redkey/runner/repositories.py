"""Check the repositories of `--repo` at the start, so a mistyped path fails before the first task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from redkey.errors import WorkplaceRefused

# https://host/path, or git's short form for ssh, host:path.
_REMOTE = re.compile(r"[a-z+]+://|[^/]+:")


def check_repositories(prefixes: Sequence[str]) -> None:
    """Raise WorkplaceRefused if a prefix is a local path without a repository."""
    for prefix in prefixes:
        if not prefix or _REMOTE.match(prefix):
            continue
        folder = Path(prefix)
        if not folder.is_dir():
            raise WorkplaceRefused(f"there is no repository {prefix[:200]!r}", code="repository_missing")
        if not is_clone(folder) and not any(is_clone(one) for one in folder.iterdir()):
            raise WorkplaceRefused(f"{folder.resolve()} is not the top of a git repository", code="repository_missing")


def is_clone(repository: Path) -> bool:
    """Return whether a directory is the top of a clone, bare or with a working tree."""
    return (repository / ".git").exists() or (repository / "HEAD").is_file()
