"""Check that the paths of a step's artifacts are inside the repository.

`path_findings` checks the text of a path, with the same result on every system. `resolve_inside` also follows symlinks
on disk. Its result holds only for that moment: write to the path it returns, and let no other process change the
repository in between.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from redkey.errors import Finding, WireRefused

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE_OR_SCHEME = re.compile(r"[A-Za-z]:|[A-Za-z][A-Za-z0-9+.-]*://")
# The maximum length of a file name.
_NAME_BYTES = 255

PATH_RULES: dict[str, str] = {
    "path_empty": "the path names no file",
    "path_control": "the path contains a control character",
    "path_backslash": "the path contains a backslash, which some systems read as a slash",
    "path_absolute": "the path begins at the root; write it relative to the repository",
    "path_drive": "the path begins with a drive letter or a scheme; write it relative to the repository",
    "path_parent": "the path has a segment of dots, which leads to a parent directory",
    "path_git": "the path leads into the .git directory",
    "path_directory": "the path ends with a slash, so it names a directory",
    "path_too_long": "a segment of the path is longer than 255 bytes",
    "path_symlink": "a symlink on the path leads out of the repository, or is broken",
}


def path_findings(
    path: str, pointer: str = "", *, directory: bool = False, severity: Literal["error", "warning"] = "error"
) -> list[Finding]:
    """List what is wrong with the text of a path; `directory` allows a slash at its end."""
    return [Finding(code, pointer, PATH_RULES[code], severity) for code in _broken(path, directory)]


def normal(path: str) -> str:
    """Return the path without empty segments and single dots."""
    return "/".join(segment for segment in path.split("/") if segment not in ("", "."))


def resolve_inside(root: Path, path: str) -> Path:
    """Resolve `path` below `root`, which must exist; raise WireRefused if the result is not inside."""
    findings = path_findings(path)
    if findings:
        raise WireRefused(findings)
    home = root.resolve(strict=True)
    place = Path(os.path.realpath(home / normal(path)))
    inside = place.is_relative_to(home) and place != home
    # A link that remains a link after resolving is a loop, which cannot be written to.
    if not inside or place.is_symlink() or any(parent.is_symlink() for parent in place.parents):
        raise WireRefused([Finding("path_symlink", "", PATH_RULES["path_symlink"])])
    if _is_git(place.relative_to(home).parts):
        raise WireRefused([Finding("path_git", "", PATH_RULES["path_git"])])
    return place


def _broken(path: str, directory: bool) -> list[str]:
    segments = path.split("/")
    broken = {
        "path_control": _CONTROL.search(path) is not None,
        "path_backslash": "\\" in path,
        "path_absolute": path.startswith("/"),
        "path_drive": any(_DRIVE_OR_SCHEME.match(text) for text in (path, *segments)),
        # Some systems ignore dots and blanks at the end of a name, so ".. " means ".." there.
        "path_parent": any(len(segment) > 1 and not segment.strip(". ") for segment in segments),
        "path_git": _is_git(segments),
        "path_directory": path.endswith("/") and not directory,
        "path_too_long": any(len(segment.encode(errors="replace")) > _NAME_BYTES for segment in segments),
    }
    if not normal(path).strip(". "):
        broken["path_empty"] = not broken["path_parent"]
    return [code for code in PATH_RULES if broken.get(code)]


def _is_git(segments: list[str] | tuple[str, ...]) -> bool:
    return any(segment.rstrip(". ").casefold() in (".git", "git~1") for segment in segments)
