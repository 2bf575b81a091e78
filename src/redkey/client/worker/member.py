"""A member of a run: one worker, its agent, and its connections."""

from __future__ import annotations

from dataclasses import dataclass

from redkey.client.connection import Connection, SyncSender
from redkey.client.policy import Policy
from redkey.client.worker.declared import Worker
from redkey.client.worker.log import WorkerLog


@dataclass(frozen=True, slots=True)
class Member:
    """One worker of a run. Heartbeats have their own connections."""

    worker: Worker
    agent_id: str
    sender: SyncSender
    pulse: Connection
    log: WorkerLog

    @property
    def brief(self) -> SyncSender:
        """A sender for optional calls: a server that does not answer must not delay a stop."""
        return brief(self.sender)


def brief(sender: SyncSender) -> SyncSender:
    """The same sender with a short timeout."""
    return SyncSender(sender.connection, Policy(timeout_seconds=5.0, max_retries=1))
