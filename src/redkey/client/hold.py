"""Holds: a claim kept alive without a handler, for programs that work on a task in many steps.

    hold = rk.hold("podcast", agent_id, wait=30)          # or rk.hold_task(task_id, agent_id)
    if isinstance(hold, Hold):
        hold.progress("reading the sources")
        hold.complete({"facts": 5})                       # or hold.fail, hold.block, hold.release

A thread sends the heartbeats, so the holder may take its time. Every call through the hold counts as activity, and so
does `touch`. If the holder does nothing for the `idleSeconds` of its queue, the hold stalls: other agents may claim the
task. The holder's next call resumes the hold if no other agent has claimed it. Any thread may end a hold. A worker with
a handler (`redkey.client.worker`) does all this by itself, and a running handler counts as activity.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import msgspec

from redkey.client.calls.claims import Claims
from redkey.client.connection import Connection, SyncSender
from redkey.client.flow import Steps
from redkey.client.operation import Mode, Procedure, Sender, Sync
from redkey.client.policy import Policy, beat_policy
from redkey.client.request import Request
from redkey.client.worker.context import WorkContext
from redkey.client.worker.lease import Lease, now
from redkey.client.worker.pulse import Pulse
from redkey.client.worker.verdict import Block, Done, Fail, Release
from redkey.errors import AlreadyTerminal, CallMisused, ClientError, LeaseLost, NotFound
from redkey.shapes.claims import ClaimChanged, Claimed, ClaimEnded, ClaimNext, FailureKind, Heartbeat
from redkey.shapes.fields import BlockerType

__all__ = ["Hold", "now"]

T = TypeVar("T")


class Hold(WorkContext[Mode]):
    """A won claim and the actions of its holder on the task; the heartbeats start at once.

    `complete`, `fail`, `block` and `release` end it. If the server refuses one of them, the hold continues and you may
    try another. `lease_lost` is true when another agent may have the task.
    """

    status: Literal["claimed"] = "claimed"

    def __init__(self, sender: Sender, pulse: Connection, claimed: Claimed, lease: Lease) -> None:
        patience = beat_policy(lease.seconds)
        claims: Claims[Sync] = Claims(SyncSender(pulse, patience))
        self._pulse = Pulse(claims, claimed.claim_id, lease, lambda: self.idle_seconds)
        super().__init__(_Active(sender, self), claimed, lease, threading.Event(), self._pulse.latest)
        # Whether the server has accepted an end of this hold.
        self.ended = False
        self._active_at = now()
        # The server records at most one end, however often it is sent.
        self._end_key = Policy().new_key()
        self._pulse.start()

    @property
    def idle_seconds(self) -> float:
        """Return the seconds since the holder's last activity."""
        return now() - self._active_at

    @property
    def stalled(self) -> bool:
        """Whether the holder was idle for so long that others may claim the task."""
        return self._pulse.is_stalled

    @property
    def lost(self) -> bool:
        """Whether the server said that this claim no longer holds the task."""
        return self._lease.end is not None

    def touch(self) -> None:
        """Count as active now; a stalled hold resumes if no other agent has claimed the task."""
        self._active_at = now()
        self._pulse.resume()

    def close(self) -> None:
        """Stop the heartbeats without ending the claim, which lasts until its lease expires."""
        self._pulse.stop()

    @Procedure
    def start(self) -> Steps[ClaimChanged]:
        """Record that the work has started."""
        started: ClaimChanged = yield Claims.start.build(None, self.claim_id)
        return started

    @Procedure
    def complete(
        self,
        output: Any = None,
        *,
        summary: str | None = None,
        notes: str | None = None,
        cost_usd: float | None = None,
        semantic: Literal["pass", "fail", "skipped"] | None = None,
        attempts: int | None = None,
        claim_next: ClaimNext | None = None,
    ) -> Steps[ClaimEnded]:
        """Complete the task."""
        done = Done(output, summary, notes, cost_usd, semantic, attempts)
        ended: ClaimEnded = yield from self._end(done.report(self.claim_id, claim_next))
        return ended

    @Procedure
    def fail(
        self, reason: str, *, kind: FailureKind = "error", claim_next: ClaimNext | None = None
    ) -> Steps[ClaimEnded]:
        """Fail the attempt; another one follows if the task has attempts left."""
        ended: ClaimEnded = yield from self._end(Fail(reason, kind=kind).report(self.claim_id, claim_next))
        return ended

    @Procedure
    def block(
        self,
        reason: str,
        blocker_type: BlockerType = "ambiguity",
        *,
        suggested_resolution: str | None = None,
        depends_on: Sequence[str] | None = None,
    ) -> Steps[ClaimChanged]:
        """Block the task; the answer comes with the next claim."""
        blocked = Block(reason, blocker_type, suggested_resolution=suggested_resolution, depends_on=depends_on)
        ended: ClaimChanged = yield from self._end(blocked.report(self.claim_id, None))
        return ended

    @Procedure
    def release(self) -> Steps[ClaimChanged]:
        """Release the task: others may claim it at once."""
        ended: ClaimChanged = yield from self._end(Release().report(self.claim_id, None))
        return ended

    def _end(self, request: Request[T]) -> Steps[T]:
        if self.ended:
            raise CallMisused(f"the end of {self.claim_id} was already sent", code="claim_ended")
        headers = {**request.headers, "idempotency-key": self._end_key}
        try:
            reply: T = yield msgspec.structs.replace(request, headers=headers)
        except (LeaseLost, AlreadyTerminal, NotFound):
            yield from self._drop()
            raise
        self.ended = True
        self._pulse.stop()
        return reply

    def _drop(self) -> Steps[None]:
        """Record the loss of the claim. A heartbeat finds out whether the task was cancelled."""
        self._pulse.stop()
        try:
            heartbeat: Heartbeat = yield Claims.heartbeat.build(None, self.claim_id)
            self._lease.finish("cancelled" if heartbeat.state == "cancelled" else "lease_lost")
        except ClientError:
            self._lease.finish("lease_lost")


class _Active:
    """Sends requests for a hold and counts each as activity of its holder."""

    def __init__(self, sender: Sender, hold: Hold[Any]) -> None:
        self._sender, self._hold = sender, hold

    def send(self, request: Request[Any]) -> Any:
        self._hold.touch()
        return self._sender.send(request)

    def take(self, steps: Steps[Any]) -> Any:
        self._hold.touch()
        return self._sender.take(steps)
