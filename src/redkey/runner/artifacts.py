"""Write artifacts into a working directory: check all of them first, then write each one atomically.

`redkey.wire.step_paths` decides which paths are allowed. This module does not trust the directory to stay unchanged:
it opens each folder of a path separately and follows no link, so a link that appears in the meantime is not followed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mimetypes
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

import msgspec

from redkey.errors import OutputRefused, WireRefused
from redkey.wire.step import StepArtifact
from redkey.wire.step_paths import normal, resolve_inside

_NEW_FILE: Final = 0o644
_NEW_DIRECTORY: Final = 0o755
_ONE_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The media type of files with an unknown ending.
_UNKNOWN: Final = "application/octet-stream"


class Written(msgspec.Struct, frozen=True):
    """A written file: its path in the working directory, its hash, size and media type."""

    path: str
    sha256: str
    bytes: int
    media_type: str


class _Place(msgspec.Struct, frozen=True):
    """The resolved place of an artifact, with no link on the way."""

    artifact: StepArtifact
    folders: tuple[str, ...]
    name: str


def write_all(root: Path, artifacts: Sequence[StepArtifact], own: Iterable[str] = ()) -> list[Written]:
    """Write artifacts into `root`. If one is not allowed, raise OutputRefused before anything is written.

    `own` are paths that the same claim wrote before; it may create them again.
    """
    mine = {normal(path) for path in own}
    places = [_place(root, artifact) for artifact in artifacts]
    for place in places:
        _check(root, place, mine)
    return [_write(root, place, mine) for place in places]


def is_full(cause: OSError) -> bool:
    """Return whether the disk or the user's quota is full, which is not the agent's fault."""
    return cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _place(root: Path, artifact: StepArtifact) -> _Place:
    try:
        real = resolve_inside(root, artifact.path)
    except WireRefused as refused:
        raise OutputRefused(f"{artifact.path[:200]!r}: {refused.message}", code=refused.code) from refused
    except OSError as cause:
        # Another program changed the directory in the meantime.
        raise OutputRefused(f"{artifact.path[:200]!r}: {cause.strerror}", code="artifact_place") from cause
    *folders, name = real.relative_to(root.resolve()).parts
    return _Place(artifact, tuple(folders), name)


def _check(root: Path, place: _Place, mine: set[str]) -> None:
    path = root.resolve().joinpath(*place.folders, place.name)
    shown = repr(place.artifact.path[:200])
    try:
        found = path.lstat()
    except FileNotFoundError:
        found = None
    except OSError as cause:
        raise OutputRefused(f"{shown} cannot be written: {cause.strerror}", code="artifact_place") from cause
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise OutputRefused(f"{shown} exists and is not a file", code="artifact_place")
    if place.artifact.operation == "create" and found is not None and normal(place.artifact.path) not in mine:
        raise OutputRefused(f"{shown} exists already; update it instead", code="artifact_exists")
    if place.artifact.operation == "update" and found is None:
        raise OutputRefused(f"{shown} does not exist; create it instead", code="artifact_missing")


def _write(root: Path, place: _Place, mine: set[str]) -> Written:
    path, data = normal(place.artifact.path), place.artifact.content.encode()
    with contextlib.ExitStack() as stack:
        try:
            folder = _descend(root.resolve(), place.folders, stack)
            _publish(folder, place.name, [data], replace=place.artifact.operation == "update" or path in mine)
        except FileExistsError as cause:
            raise OutputRefused(f"{path!r} exists already; update it instead", code="artifact_exists") from cause
        except OSError as cause:
            if is_full(cause):
                raise
            text = f"{path!r} cannot be written: {cause.strerror}"
            raise OutputRefused(text, code="artifact_place") from cause
    return Written(path, hashlib.sha256(data).hexdigest(), len(data), media_type(path))


def _descend(root: Path, folders: Iterable[str], stack: contextlib.ExitStack) -> int:
    """Open the last directory of the path, creating missing ones."""

    def opened(name: str | Path, within: int | None = None) -> int:
        folder = os.open(name, _ONE_STEP, dir_fd=within)
        stack.callback(os.close, folder)
        return folder

    at = opened(root)
    for name in folders:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, _NEW_DIRECTORY, dir_fd=at)
        at = opened(name, at)
    return at


def _publish(folder: int, name: str, pieces: Iterable[bytes], *, replace: bool) -> None:
    """Write a temporary file beside the target, then rename it."""
    draft = f".redkey-{secrets.token_hex(8)}"
    descriptor = os.open(draft, _DRAFT, _NEW_FILE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as out:
            for piece in pieces:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        if replace:
            with contextlib.suppress(FileNotFoundError):
                kept = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                os.chmod(draft, kept & 0o777, dir_fd=folder)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            # A link fails if the name exists, so no file is overwritten, not even one created just now.
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
    os.fsync(folder)


def put_file(root: Path, path: str, pieces: Iterable[bytes]) -> None:
    """Write a file of the runner into a working directory; OutputRefused if the path has a link."""
    *folders, name = normal(path).split("/")
    with contextlib.ExitStack() as stack:
        try:
            _publish(_descend(root.resolve(), folders, stack), name, pieces, replace=True)
        except OSError as cause:
            if is_full(cause):
                raise
            raise OutputRefused(f"{path!r} cannot be written: {cause.strerror}", code="artifact_place") from cause


@contextlib.contextmanager
def open_inside(root: Path, path: str) -> Iterator[BinaryIO]:
    """Open a file in a working directory without following links that lead out of it."""
    try:
        real = resolve_inside(root, path)
        with contextlib.ExitStack() as stack:
            *folders, name = real.relative_to(root.resolve()).parts
            at = os.open(root.resolve(), _ONE_STEP)
            stack.callback(os.close, at)
            for folder in folders:
                at = os.open(folder, _ONE_STEP, dir_fd=at)
                stack.callback(os.close, at)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            file = stack.enter_context(os.fdopen(os.open(name, flags, dir_fd=at), "rb"))
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OutputRefused(f"{path[:200]!r} is not a file", code="artifact_place")
            yield file
    except WireRefused as refused:
        raise OutputRefused(f"{path[:200]!r}: {refused.message}", code=refused.code) from refused
    except OSError as cause:
        raise OutputRefused(f"{path[:200]!r} cannot be read: {cause.strerror}", code="artifact_missing") from cause


def read_inside(root: Path, path: str, most: int) -> bytes:
    """Read a file in a working directory, at most `most` bytes, without following links that lead out of it."""
    with open_inside(root, path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OutputRefused(f"{path[:200]!r} has more than {most:,} bytes", code="artifact_too_large")
    return data


def media_type(path: str) -> str:
    """Return the media type of a file by its name."""
    if PurePosixPath(path).suffix.lower() in (".md", ".markdown"):
        return "text/markdown"
    return mimetypes.guess_type(path)[0] or ("text/plain" if "." not in PurePosixPath(path).name else _UNKNOWN)
