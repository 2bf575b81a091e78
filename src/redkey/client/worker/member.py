"""A member of a run: one worker, the agent that it acts as, and what it calls the server by."""

from __future__ import annotations

from dataclasses import dataclass

from redkey.client.connection import Connection, SyncSender
from redkey.client.policy import Policy
from redkey.client.worker.declared import Worker
from redkey.client.worker.log import WorkerLog


@dataclass(frozen=True, slots=True)
class Member:
    """One worker of a run. Heartbeats have connections of their own."""

    worker: Worker
    agent_id: str
    sender: SyncSender
    pulse: Connection
    log: WorkerLog

    @property
    def brief(self) -> SyncSender:
        """A sender for what is polite and not vital: a server that does not answer must not hold up a stop."""
        return brief(self.sender)


def brief(sender: SyncSender) -> SyncSender:
    """The same sender with little patience."""
    return SyncSender(sender.connection, Policy(timeout_seconds=5.0, max_retries=1))
