"""Unix sockets: private before anybody can connect, put in place of dead ones only, removed at the end."""

from __future__ import annotations

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from redkey.errors import CannotListen

BACKLOG = 4096
# What the kernel takes for the path of a Unix socket, without the final NUL.
PATH_LIMIT = 107


def listen_unix(path: Path, *, taken: str = CannotListen.code) -> socket.socket:
    """Open a Unix socket for its owner alone, in place of one that no process listens on any more.

    `taken` is the code of the refusal when another process listens there.
    """
    if len(os.fsencode(path)) > PATH_LIMIT:
        message = f"{path} is too long for a Unix socket ({PATH_LIMIT} bytes); choose a shorter path"
        raise CannotListen(message, code="socket_path_too_long")
    _remove_stale(path, taken)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.setblocking(False)
        found.bind(str(path))
        # Before listening: until now nobody could connect.
        path.chmod(0o600)
        found.listen(BACKLOG)
    except OSError as cause:
        found.close()
        raise CannotListen(f"cannot listen on {path}: {cause.strerror or cause}") from cause
    return found


def remove_unix(path: Path) -> None:
    """Remove a socket that was ours."""
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def peer_user(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, user, _group = struct.unpack("3i", packed)
    return int(user)


def _remove_stale(path: Path, taken: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        # A link could lead anywhere, and a file is somebody's: neither is ours to remove.
        raise CannotListen(f"{path} exists and is not a socket", code="not_a_socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as cause:
            raise CannotListen(f"cannot tell whether a process listens on {path}: {cause}") from cause
    raise CannotListen(f"another process already listens on {path}", code=taken)
