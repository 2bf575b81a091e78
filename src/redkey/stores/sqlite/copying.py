"""Copies of a data directory: a backup of one moment, taken while it is in use, and the way back from a backup.

The database is copied inside a transaction that fixes one moment. While that transaction lasts, no erased body leaves
the disk, because the log cannot be emptied while it is read. So every file that the copy names can be copied after it.
Everything is written to a temporary folder and renamed at the end: an interrupted copy never looks complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from redkey.errors import BackupRefused
from redkey.services.backup import MANIFEST, File, Manifest, compare, describe, read_manifest
from redkey.stores.disk import new_folder
from redkey.stores.durable import sync_directory
from redkey.stores.sqlite.connection import DATABASE_NAME
from redkey.stores.sqlite.directory import KEYS
from redkey.stores.sqlite.failures import sync_file, translated
from redkey.stores.sqlite.inspection import Inspection

# Files outside `keys` that contain secrets.
_SECRETS = ("credentials.json",)
_CHUNK = 1024 * 1024


def take_backup(
    directory: Path, target: Path, taken_at: str, *, with_keys: bool, check: Callable[[Path], None] | None = None
) -> Manifest:
    """Copy a data directory, in use or not, to a new place; the manifest lists what was copied.

    `check` inspects the copy before it is put in place, and raises if it is not sound.
    """
    with new_folder(target) as aside, translated():
        with Inspection(directory) as source:
            source.copy_database(aside / DATABASE_NAME)
            for topic in source.topics():
                _copy_bodies(source, topic, directory, aside)
                _write_checkpoint(source, topic, aside)
            if with_keys:
                _copy_secrets(directory, aside)
            manifest = describe(source, taken_at, dict(list_files(aside)), keys=with_keys)
        _write(aside / MANIFEST, manifest.encode(), 0o600)
        _sync_folders(aside)
        if check is not None:
            check(aside)
    return manifest


def read_backup(backup: Path) -> Manifest:
    """The manifest of a backup whose files are complete and unchanged; BackupRefused otherwise."""
    try:
        manifest = read_manifest((backup / MANIFEST).read_bytes())
    except FileNotFoundError as cause:
        raise BackupRefused(f"{backup} has no {MANIFEST}: it is not a backup", code="no_backup") from cause
    wrong = compare(manifest, list_files(backup))
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise BackupRefused(f"the backup is damaged: {wrong[0]}{more}", code="backup_damaged")
    return manifest


@contextmanager
def unpacked(backup: Path, manifest: Manifest, target: Path) -> Iterator[Path]:
    """Copy the files of a backup to a temporary folder for the block; move it into place if the block succeeds."""
    with new_folder(target) as aside, translated():
        for name, file in manifest.files.items():
            mode = (backup / name).stat().st_mode & 0o700 | 0o600
            if copy_file(backup / name, aside / name, mode) != file:
                raise BackupRefused(f"{name} changed while it was copied", code="backup_damaged")
        _sync_folders(aside)
        yield aside
        _sync_folders(aside)


def list_files(folder: Path) -> Iterator[tuple[str, File]]:
    """Every file of a backup except the manifest, by its path, with its hash."""
    ignored = {MANIFEST, f"{DATABASE_NAME}-shm"}
    if not (folder / f"{DATABASE_NAME}-wal").exists() or not (folder / f"{DATABASE_NAME}-wal").stat().st_size:
        # Reading a backup may leave an empty log; a log that is not empty was written to.
        ignored.add(f"{DATABASE_NAME}-wal")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in ignored:
            yield name, _hashed(path)


def copy_file(source: Path, target: Path, mode: int = 0o600) -> File:
    """Copy one file durably; return its hash and size."""
    _make_folder(target.parent)
    digest, size = sha256(), 0
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as out, source.open("rb") as file:
        os.fchmod(descriptor, mode)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            out.write(chunk)
        out.flush()
        sync_file(descriptor)
    return File(digest.hexdigest(), size)


def _copy_bodies(source: Inspection, topic: str, directory: Path, aside: Path) -> None:
    for name, size in source.file_bodies(topic):
        path = f"content/{topic}/{name}"
        try:
            copied = copy_file(directory / path, aside / path)
        except FileNotFoundError as cause:
            raise BackupRefused(f"{path} is missing; run redkey fsck on {directory}", code="source_damaged") from cause
        if copied != File(name, size):
            raise BackupRefused(f"{path} is damaged; run redkey fsck on {directory}", code="source_damaged")


def _write_checkpoint(source: Inspection, topic: str, aside: Path) -> None:
    """Copy the newest checkpoint of this moment; the published one may already belong to a later moment."""
    for _, note in source.checkpoints(topic, 1):
        _write(aside / "checkpoints" / topic, note, 0o600)


def _copy_secrets(directory: Path, aside: Path) -> None:
    paths = [path for path in (directory / KEYS).rglob("*") if path.is_file() and path.name != "lock"]
    for path in (*paths, *(directory / name for name in _SECRETS)):
        if path.exists():
            copy_file(path, aside / path.relative_to(directory), 0o600)


def _make_folder(folder: Path) -> None:
    """Create a folder that only its owner can access, and its missing parents."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700)


def _hashed(path: Path) -> File:
    digest, size = sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return File(digest.hexdigest(), size)


def _write(path: Path, data: bytes, mode: int) -> None:
    _make_folder(path.parent)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
        out.flush()
        sync_file(descriptor)


def _sync_folders(folder: Path) -> None:
    for path in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
        sync_directory(path)
