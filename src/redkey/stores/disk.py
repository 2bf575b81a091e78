"""The disk under a store: disk errors as store errors, checks for free space, and folders that appear complete."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from redkey.errors import BackupRefused, StoreError, StoreFailed, StoreFull
from redkey.stores.durable import sync_directory

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def disk_failure(error: OSError) -> StoreError:
    """Return the store error for an error of the operating system."""
    if error.errno in _NO_SPACE:
        return StoreFull(f"no space is left: {error}")
    return StoreFailed(f"the data directory cannot be used: {error}")


@contextmanager
def disk_failures() -> Iterator[None]:
    """Turn every OSError in the block into a store error."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error) from error


def check_room(directory: Path, size: int) -> None:
    """Raise OSError if `size` bytes do not fit on the disk of a directory, which need not exist yet."""
    while not directory.exists():
        directory = directory.parent
    # The file has no name and is not synced: it disappears when closed, and the disk need not write it.
    with TemporaryFile(dir=directory, buffering=0) as file:
        # A disk that is almost full accepts a part of the bytes, and fails at the next write.
        while size:
            size -= file.write(bytes(size))


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Create a folder to fill; rename it to `target` if the block succeeds, delete it otherwise."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} exists already and is not overwritten", code="target_exists")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    with disk_failures():
        aside.mkdir(mode=0o700)
    try:
        with disk_failures():
            yield aside
            # The rename replaces an empty folder. It fails if another process has created something at the target.
            os.rename(aside, target)  # noqa: PTH104
            sync_directory(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
