"""Ports for servers that are started again on the port they had."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_STATES = {"01": "ESTABLISHED", "06": "TIME_WAIT", "08": "CLOSE_WAIT", "0A": "LISTEN"}
# Linux lets a server with SO_REUSEADDR listen on a port that another such socket is bound to but does not listen on.
_HOLDS = sys.platform == "linux"


def lasting_port() -> int:
    """Return a free port, and keep it from other processes while this one lives.

    The kernel assigns ports of its ephemeral range to every process that connects or listens, so a server that stops
    could find its port taken when it restarts. The port is outside of this range where there is room, and stays bound
    to a socket of this process. The choice is random: both workers of a test run share a seed.
    """
    low, high = map(int, _EPHEMERAL.read_text().split()) if _EPHEMERAL.exists() else (32768, 60999)
    ports = [port for port in range(20_000, 65_536) if not low <= port <= high] or list(range(20_000, 65_536))
    for port in SystemRandom().sample(ports, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if _HOLDS:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # It stays open until this process ends.
                probe.detach()
            return port
    raise AssertionError("none of 100 ports is free")


def users_of(port: int) -> str:
    """Describe who uses a port now, for the message of a server that could not listen on it."""
    found = [
        f"{_STATES.get(state, state)} by {', '.join(_processes(inode)) or 'no process that can be seen'}"
        for state, inode in _sockets(port)
    ]
    return f"port {port} is used: {'; '.join(found)}" if found else f"port {port} is free"


def _sockets(port: int) -> Iterator[tuple[str, str]]:
    """Yield state and inode of every TCP socket with this local port."""
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[3], fields[9]


def _processes(inode: str) -> Iterator[str]:
    """Yield every process that has this socket open."""
    for process in Path("/proc").glob("[0-9]*"):
        # Files close and processes end while they are listed.
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if any(_links_to(f"socket:[{inode}]", one) for one in (process / "fd").iterdir()):
                yield f"process {process.name} ({command.strip()})"


def _links_to(target: str, link: Path) -> bool:
    with suppress(OSError):
        return str(link.readlink()) == target
    return False
