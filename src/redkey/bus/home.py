"""The bus's home: where its sockets, its log and its token are, and how it is kept private.

HOME/coord.sock                the socket for everything
HOME/sessions/ID/coord.sock    the socket of one session
HOME/bus.db, -wal, -shm        the durable log
HOME/bus.lock                  held while a bus runs here
HOME/token, HOME/http.json     how the HTTP face is called
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from redkey.errors import BusLost, CannotListen, ConfigRefused
from redkey.http.unix_sockets import PATH_LIMIT

VARIABLE = "WEAVE_HOME"
SOCKET = "coord.sock"


def home_of(environment: Mapping[str, str]) -> Path:
    """WEAVE_HOME, or ~/.weave; set and blank is a mistake that must not lead to another place."""
    text = environment.get(VARIABLE)
    if text is None:
        return Path("~/.weave").expanduser()
    if not text.strip():
        raise ConfigRefused(f"{VARIABLE} is set and blank; name a directory, or unset it")
    return Path(text.strip()).expanduser().absolute()


def find_home(environment: Mapping[str, str]) -> Path:
    """The home of the bus that a client means: WEAVE_HOME, the bus of a `redkey serve` here, or ~/.weave."""
    if VARIABLE not in environment:
        served = Path(environment.get("REDKEY_DATA") or ".redkey").absolute() / "bus"
        if (served / SOCKET).exists():
            return served
    return home_of(environment)


def no_bus(path: Path, cause: OSError) -> BusLost:
    """Nobody answers at a socket."""
    text = f"no bus answers at {path}: {cause.strerror or cause}; start one with redkey bus serve, or redkey serve"
    return BusLost(text, code="no_bus")


def session_socket(home: Path, session_id: str) -> Path:
    return home / "sessions" / session_id / SOCKET


def socket_for(home: Path, session_id: str | None = None) -> Path:
    """Where a command goes: to the socket of its session if that is there, else to the one for everything."""
    if session_id is not None:
        own = session_socket(home, session_id)
        if own.exists() and len(os.fsencode(own)) <= PATH_LIMIT:
            return own
    return home / SOCKET


def prepare_home(home: Path) -> None:
    """Make the home where it is missing, for its owner alone; refuse one that others could change."""
    for directory in (home, home / "sessions"):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = directory.lstat()
        except (FileExistsError, NotADirectoryError):
            raise CannotListen(f"{directory} is not a directory", code="home_unsafe") from None
        except OSError as cause:
            raise CannotListen(f"cannot make {directory}: {cause.strerror or cause}", code="home_unsafe") from cause
        if not stat.S_ISDIR(found.st_mode):
            raise CannotListen(f"{directory} is not a directory", code="home_unsafe")
        if found.st_uid != os.geteuid():
            message = f"{directory} belongs to user {found.st_uid}, this process runs as {os.geteuid()}"
            raise CannotListen(message, code="home_unsafe")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise CannotListen(f"others may write to {directory}; run chmod go-w on it", code="home_unsafe")


class HomeLock:
    """The right to be the bus of a home; the kernel takes it back when the process dies."""

    def __init__(self, home: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(home / "bus.lock", flags, 0o600)
        except OSError as cause:
            message = f"{home / 'bus.lock'} cannot be opened (a link is refused): {cause.strerror or cause}"
            raise CannotListen(message, code="home_unsafe") from cause
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise CannotListen(f"a bus runs in {home} already", code="bus_running") from None

    def release(self) -> None:
        os.close(self._descriptor)
