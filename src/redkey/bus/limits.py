"""How much the bus takes: bounds that keep one caller from costing the others their turn."""

from __future__ import annotations

import msgspec


class BusLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a connection, a session and a mailbox may hold."""

    connections: int = 10_000
    sessions: int = 10_000
    agents: int = 1_000
    # Messages that wait for one agent; beyond it senders are told that its mailbox is full.
    mailbox: int = 10_000
    # Messages that wait for all agents together.
    pending: int = 1_000_000
    # Messages on their way to one agent that it has not confirmed.
    window: int = 256
    # How often one connection is given the same message.
    deliveries: int = 5
    # A line that has begun must end within this time.
    line_seconds: float = 30.0
    # A reader that takes nothing for so long is told and cut off; what waits for it stays.
    stalled_seconds: float = 30.0
    # What is kept in memory for a reader that is slow.
    output_bytes: int = 256 * 1024
    # Requests that wait while their sender does not read; beyond it nothing more is read from that connection.
    input_bytes: int = 2 * 1024 * 1024
    # A connection that is no agent, follows nothing and says nothing for so long is closed.
    idle_seconds: float = 600.0
    # An agent is away when its connection has been gone for so long.
    away_seconds: float = 2.0
    # An agent without a connection is online for so long after it asked something by HTTP.
    asking_seconds: float = 90.0
    # What is sent to everybody goes to agents that were here within this time.
    broadcast_seconds: float = 3600.0
    # An agent that is away for so long is removed; while messages wait for it, only after `retention_days`.
    away_days: float = 7.0
    history: int = 5_000
    history_bytes: int = 8 * 1024 * 1024
    # Records of messages that everybody has taken are forgotten after this many days.
    retention_days: float = 30.0
