"""The bus's home: the directory of its sockets, log and token, and how it stays private.

HOME/coord.sock                the main socket
HOME/sessions/ID/coord.sock    the socket of one session
HOME/bus.db, -wal, -shm        the durable log
HOME/bus.lock                  held while a bus runs here
HOME/token, HOME/http.json     how the HTTP face is called
HOME/elsewhere                 the address of the server that hosts the bus in place of this home
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from redkey.config import data_directory
from redkey.errors import BusLost, CannotListen, ConfigRefused
from redkey.http.unix_sockets import PATH_LIMIT

VARIABLE = "WEAVE_HOME"
SOCKET = "coord.sock"
ELSEWHERE = "elsewhere"


def home_of(environment: Mapping[str, str]) -> Path:
    """The directory named by WEAVE_HOME, else ~/.weave; a blank WEAVE_HOME is an error."""
    text = environment.get(VARIABLE)
    if text is None:
        return Path("~/.weave").expanduser()
    if not text.strip():
        raise ConfigRefused(f"{VARIABLE} is set but blank; set it to a directory, or unset it")
    return Path(text.strip()).expanduser().absolute()


def find_home(environment: Mapping[str, str]) -> Path:
    """Find the bus of a client: WEAVE_HOME, else the bus of the server that other clients find here, else ~/.weave.

    A killed server leaves its socket behind, so a socket counts only if a process listens on it. If no bus answers at
    all, the error shall name the server's.
    """
    own = home_of(environment)
    if VARIABLE in environment:
        return own
    served = data_directory(None, environment).absolute() / "bus"
    if (served / ELSEWHERE).exists() or _is_live(served / SOCKET):
        return served
    return served if (served / SOCKET).exists() and not _is_live(own / SOCKET) else own


def _is_live(path: Path) -> bool:
    """Whether a process listens on a Unix socket; one that is busy, or refuses this user, counts."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return False
        except OSError as cause:
            # A path that is too long for a socket has none.
            return cause.errno in (errno.EAGAIN, errno.EACCES)
    return True


def no_bus(path: Path, cause: OSError) -> BusLost:
    """The error for a socket where no bus answers; another server on the same database may host the bus."""
    try:
        host = (path.parent / ELSEWHERE).read_text()
    except OSError:
        host = ""
    if host:
        text = f"the bus of these servers is at {host}: run this on that machine, or call {host}/api with your key"
        return BusLost(text, code="bus_elsewhere")
    text = f"no bus answers at {path}: {cause.strerror or cause}; start one with redkey bus serve, or redkey serve"
    return BusLost(text, code="no_bus")


def note_host(home: Path, url: str) -> None:
    """Note for the clients of a home which server hosts the bus; an empty `url` means the one of this home."""
    if url:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = home / f".{ELSEWHERE}"
        aside.write_text(url)
        aside.replace(home / ELSEWHERE)
    else:
        (home / ELSEWHERE).unlink(missing_ok=True)


def session_socket(home: Path, session_id: str) -> Path:
    """The path of a session's own socket."""
    return home / "sessions" / session_id / SOCKET


def socket_for(home: Path, session_id: str | None = None) -> Path:
    """The socket for a command: that of its session if it exists, else the main one."""
    if session_id is not None:
        own = session_socket(home, session_id)
        if own.exists() and len(os.fsencode(own)) <= PATH_LIMIT:
            return own
    return home / SOCKET


def prepare_home(home: Path) -> None:
    """Create the home if missing, with mode 0700; refuse one that other users could change."""
    for directory in (home, home / "sessions"):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            stats = directory.lstat()
        except (FileExistsError, NotADirectoryError):
            raise CannotListen(f"{directory} is not a directory", code="home_unsafe") from None
        except OSError as cause:
            raise CannotListen(f"cannot create {directory}: {cause.strerror or cause}", code="home_unsafe") from cause
        if not stat.S_ISDIR(stats.st_mode):
            raise CannotListen(f"{directory} is not a directory", code="home_unsafe")
        if stats.st_uid != os.geteuid():
            message = f"{directory} belongs to user {stats.st_uid}, this process runs as {os.geteuid()}"
            raise CannotListen(message, code="home_unsafe")
        if stats.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise CannotListen(f"other users may write to {directory}; run chmod go-w on it", code="home_unsafe")


class HomeLock:
    """The lock of the one bus of a home; the kernel releases it when the process dies."""

    def __init__(self, home: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(home / "bus.lock", flags, 0o600)
        except OSError as cause:
            message = f"{home / 'bus.lock'} cannot be opened (symbolic links are refused): {cause.strerror or cause}"
            raise CannotListen(message, code="home_unsafe") from cause
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise CannotListen(f"a bus is already running in {home}", code="bus_running") from None

    def release(self) -> None:
        """Let another bus use the home."""
        os.close(self._descriptor)
