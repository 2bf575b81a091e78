"""Open and remove Unix sockets.

A socket gets its private mode before a client can connect, and replaces only a socket that no process listens on.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from redkey.errors import CannotListen

BACKLOG = 4096
# The longest path of a Unix socket that the kernel accepts, without the final NUL.
PATH_LIMIT = 107


def listen_unix(path: Path, *, taken: str = CannotListen.code) -> socket.socket:
    """Open a Unix socket that only its owner may use; a stale socket at the path is replaced.

    `taken` is the code of the error if another process listens there.
    """
    if len(os.fsencode(path)) > PATH_LIMIT:
        message = f"{path} is too long for a Unix socket ({PATH_LIMIT} bytes); choose a shorter path"
        raise CannotListen(message, code="socket_path_too_long")
    _remove_stale(path, taken)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.bind(str(path))
        # Set the mode before listening: no client can connect until then.
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError as cause:
        listener.close()
        raise CannotListen(f"cannot listen on {path}: {cause.strerror or cause}") from cause
    return listener


def remove_unix(path: Path) -> None:
    """Remove a socket that this process opened."""
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def peer_user(connection: socket.socket) -> int:
    """Return the user id of the connected process, which the kernel guarantees."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, user, _group = struct.unpack("3i", packed)
    return int(user)


def _remove_stale(path: Path, taken: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        # It is a file or a link that RedKey did not create: do not remove it.
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
