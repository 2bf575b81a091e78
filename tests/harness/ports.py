"""Ports for servers that are started again on the port they had."""

from __future__ import annotations

import socket
from pathlib import Path
from random import SystemRandom

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def lasting_port() -> int:
    """A free port that the kernel does not assign to other processes.

    The kernel assigns ports of its ephemeral range to every process that connects or listens, so a server that stops
    could find its port taken when it restarts. The choice is random: both workers of a test run share a seed.
    """
    low, high = map(int, _EPHEMERAL.read_text().split()) if _EPHEMERAL.exists() else (32768, 60999)
    ports = [port for port in range(20_000, 65_536) if not low <= port <= high] or list(range(20_000, 65_536))
    for port in SystemRandom().sample(ports, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("none of 100 ports is free")
