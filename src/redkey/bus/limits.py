"""The limits of the bus, so that one caller cannot slow down the others."""

from __future__ import annotations

import msgspec


class BusLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of connections, sessions and mailboxes."""

    connections: int = 10_000
    sessions: int = 10_000
    agents: int = 1_000
    # Messages that wait for one agent; beyond it senders get `mailbox_full`.
    mailbox: int = 10_000
    # Messages that wait for all agents together.
    pending: int = 1_000_000
    # Messages sent to one agent that it has not confirmed.
    window: int = 256
    # How often one connection is sent the same message.
    deliveries: int = 5
    # A line that has begun must end within this time.
    line_seconds: float = 30.0
    # A reader that takes nothing for this time gets `slow_reader` and is disconnected; its messages wait.
    stalled_seconds: float = 30.0
    # Output kept in memory for a slow reader.
    output_bytes: int = 256 * 1024
    # Requests that wait while their sender does not read; beyond it nothing more is read from that connection.
    input_bytes: int = 2 * 1024 * 1024
    # A connection without an agent, a stream or a request for this time is closed.
    idle_seconds: float = 600.0
    # An agent is away when its connection has been closed for this time.
    away_seconds: float = 2.0
    # An agent without a connection is online for this time after an HTTP request of it.
    asking_seconds: float = 90.0
    # A message to all agents goes to those that were online within this time.
    broadcast_seconds: float = 3600.0
    # An agent that is away for this time is removed; if messages wait for it, after `retention_days`.
    away_days: float = 7.0
    history: int = 5_000
    history_bytes: int = 8 * 1024 * 1024
    # Records that wait for no agent are deleted after this many days.
    retention_days: float = 30.0
