"""The repositories of `--repo`: checked at the start, so a mistyped path fails before the first task."""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redkey.errors import WorkplaceRefused

if TYPE_CHECKING:
    from redkey.runner.spec import Spec

_log = logging.getLogger("redkey.runner")

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


def landing_branch(spec: Spec) -> str | None:
    """Return the branch that finished work is merged into.

    For a coding agent on a repository of this machine that is the branch that is checked out, unless its options send
    the work elsewhere.
    """
    if spec.merge_into or spec.push or spec.own_clone or not spec.is_coding:
        return spec.merge_into
    if len(spec.repositories) != 1 or _REMOTE.match(spec.repositories[0]) or not is_clone(Path(spec.repositories[0])):
        return None
    command = ["git", "-C", spec.repositories[0], "symbolic-ref", "--short", "--quiet", "HEAD"]
    found = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603
    branch = found.stdout.strip() or None
    if branch is not None and not spec.checks:
        _log.warning("work lands on %s without a check of yours: give --check tests='make test'", branch)
    return branch


def is_clone(repository: Path) -> bool:
    """Return whether a directory is the top of a clone, bare or with a working tree."""
    return (repository / ".git").exists() or (repository / "HEAD").is_file()
