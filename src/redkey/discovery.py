"""Discovery: which servers of a data directory are alive.

Several servers may serve one data directory. Each keeps a file of its own in the folder `servers` and holds a lock on
it while it lives. A crash ends the lock, so that a client knows the living ones without asking a port that may belong
to another program by now.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from redkey.config import Credentials

FOLDER = "servers"
_IGNORED = "# Written by redkey: nothing in this directory belongs in a repository.\n*\n"


class LivingServer(msgspec.Struct, frozen=True, rename="camel"):
    """How one server is called."""

    url: str
    uds: str | None
    pid: int
    started_at: float


class Announcement:
    """The file of one server. It is locked before it gets its name, so that no client finds it unlocked."""

    def __init__(self, data: Path, url: str, uds: str | None) -> None:
        import fcntl

        folder = data / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        _remove_dead(folder)
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
        draft = self._path.with_suffix(".new")
        self._descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.write(self._descriptor, msgspec.json.encode(LivingServer(url, uds, os.getpid(), time.time())))
            draft.rename(self._path)
        except BaseException:
            draft.unlink(missing_ok=True)
            os.close(self._descriptor)
            raise

    def withdraw(self) -> None:
        """The server stops."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def living_servers(data: Path) -> list[LivingServer]:
    """The servers of a data directory that run now, the first one first."""
    found = []
    for path in _files(data / FOLDER):
        with suppress(OSError, msgspec.DecodeError):
            if not _is_dead(path):
                found.append(msgspec.json.decode(path.read_bytes(), type=LivingServer))
    return sorted(found, key=lambda one: one.started_at)


def current(found: Credentials, data: Path) -> Credentials:
    """Credentials with the address of a server that lives: the one they name, else the one that started first."""
    living = living_servers(data)
    if not living or any(one.url == found.url for one in living):
        return found
    return msgspec.structs.replace(found, url=living[0].url, uds=living[0].uds)


def keep_out_of_repositories(data: Path) -> None:
    """Give a data directory a .gitignore: it holds keys. One that is there already is left as it is."""
    with suppress(FileExistsError):
        descriptor = os.open(data / ".gitignore", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(_IGNORED)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def _is_dead(path: Path) -> bool:
    """Whether nothing holds the lock of a server's file. Where there are no such locks, a server counts as living."""
    try:
        import fcntl
    except ImportError:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_dead(folder: Path) -> None:
    for path in _files(folder):
        with suppress(OSError):
            if _is_dead(path):
                path.unlink()
