"""Find the files that an agent wrote in its directory, and reconcile them with the artifacts in its envelope.

A file counts when it is new or changed since the attempt began. Names that begin with a dot, `node_modules` and
`__pycache__` do not count, and links are never followed. If the agent declared an artifact and also wrote its file,
the file is the artifact. If the two differ in more than trailing whitespace, the agent gets a finding and tries again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import OutputRefused
from redkey.runner.artifacts import Written, media_type, open_inside, read_inside
from redkey.wire.step import SIZE_LIMIT, StepArtifact
from redkey.wire.step_paths import normal

LARGEST_BYTES: Final = 1024 * 1024 * 1024
_MOST_FILES: Final = 256
_MOST_SEEN: Final = 200_000
_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
_INLINE_BYTES: Final = 256 * 1024
_CHUNK = 1024 * 1024

# path -> size, modification time, inode
Snapshot = Mapping[str, tuple[int, int, int]]


class Reconciled(msgspec.Struct, frozen=True):
    """Declared artifacts that must still be written, and paths of existing files."""

    to_write: tuple[StepArtifact, ...]
    files: tuple[str, ...]


def snapshot(root: Path) -> Snapshot:
    """Return the files of a directory that count."""
    found: dict[str, tuple[int, int, int]] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _PASSED_OVER]
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118
            if name.startswith(".") or os.path.islink(path) or not os.path.isfile(path):  # noqa: PTH113, PTH114
                continue
            told = os.stat(path)  # noqa: PTH116
            found[os.path.relpath(path, root)] = (told.st_size, told.st_mtime_ns, told.st_ino)
        if len(found) > _MOST_SEEN:
            raise OutputRefused(f"the directory has more than {_MOST_SEEN:,} files", code="too_many_files")
    return found


def changed(root: Path, before: Snapshot) -> list[str]:
    """Return the files that are new or changed since a snapshot."""
    return sorted(path for path, told in snapshot(root).items() if before.get(path) != told)


def reconcile(
    root: Path, declared: Sequence[StepArtifact], wrote: Collection[str], others: Sequence[str]
) -> Reconciled:
    """Match declared artifacts with files: `wrote` are files of this try, `others` all further files that count."""
    to_write = []
    files = []
    for artifact in declared:
        path = normal(artifact.path)
        if path not in wrote:
            to_write.append(artifact)
            continue
        if artifact.content and not _same(root, path, artifact.content):
            text = f"the file {path!r} and its artifact differ; leave `content` empty to mean the file"
            raise OutputRefused(text, code="artifact_differs")
        files.append(path)
    named = {normal(artifact.path) for artifact in declared}
    files += [path for path in others if path not in named]
    if len(files) > _MOST_FILES:
        text = f"{len(files)} files were written; at most {_MOST_FILES} are kept: pack them into one, or remove some"
        raise OutputRefused(text, code="too_many_files")
    return Reconciled(tuple(to_write), tuple(files))


def _same(root: Path, path: str, content: str) -> bool:
    try:
        return read_inside(root, path, SIZE_LIMIT).decode().rstrip() == content.rstrip()
    except UnicodeDecodeError:
        return False


def describe(root: Path, path: str) -> Written:
    """Describe an existing file with its hash; OutputRefused if it is too large or leads out of the directory."""
    digest, size = hashlib.sha256(), 0
    with open_inside(root, path) as file:
        _check_size(path, os.fstat(file.fileno()).st_size)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            _check_size(path, size)
    return Written(path, digest.hexdigest(), size, media_type(path))


def _check_size(path: str, size: int) -> None:
    if size > LARGEST_BYTES:
        raise OutputRefused(f"{path[:200]!r} has more than {LARGEST_BYTES:,} bytes", code="artifact_too_large")


def content_of(root: Path, file: Written) -> str | Path:
    """Return a file's content for the client: small text as a string, everything else as a path to stream."""
    if file.bytes <= _INLINE_BYTES:
        try:
            return read_inside(root, file.path, _INLINE_BYTES).decode()
        except UnicodeDecodeError:
            pass
    return root / file.path
