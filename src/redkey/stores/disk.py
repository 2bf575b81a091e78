"""The disk under a store: its errors as errors of the store, its room, and folders that are whole or not there."""

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
    """The store's error for one of the operating system's."""
    if error.errno in _NO_SPACE:
        return StoreFull(f"no space is left: {error}")
    return StoreFailed(f"the data directory cannot be used: {error}")


@contextmanager
def disk_failures() -> Iterator[None]:
    """Raise what a file operation raises inside as an error of the store."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error) from error


def check_room(directory: Path, size: int) -> None:
    """Raise OSError when there is no room for so many bytes in a directory, or where it would be made."""
    while not directory.exists():
        directory = directory.parent
    # Without a name and without a sync: nothing is left of it, and the disk need not write it.
    with TemporaryFile(dir=directory, buffering=0) as file:
        # A disk that has a little room takes a part of it first, and says only then that it is full.
        while size:
            size -= file.write(bytes(size))


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends well and is deleted when it does not."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} is there already, and nothing is overwritten", code="target_exists")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    with disk_failures():
        aside.mkdir(mode=0o700)
    try:
        with disk_failures():
            yield aside
            # An empty folder of that name may be replaced. Anything else may not: another process was first.
            os.rename(aside, target)  # noqa: PTH104
            sync_directory(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
