"""One task in a worker's hands, from the claim that was won to the verdict that was told, exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from redkey.client.calls.claims import Claims
from redkey.client.connection import SyncSender
from redkey.client.operation import Sync
from redkey.client.policy import is_passing
from redkey.client.worker.context import WorkContext
from redkey.client.worker.lease import Lease, now
from redkey.client.worker.pulse import Pulse
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Block, Done, Fail, Release, Verdict, after_refusal, verdict_of
from redkey.errors import AlreadyTerminal, ClientError, Conflict, LeaseLost, NotFound, WorkInterrupted
from redkey.shapes.claims import Assignment, Claimed, ClaimEnded, ClaimNext

_log = logging.getLogger("redkey.client.worker")
_COUNTED = {Done: "completed", Fail: "failed", Block: "blocked", Release: "released"}
# Between tries to tell a verdict, when the server cannot be reached and the lease still lasts.
_PAUSE_SECONDS = 1.0

Handle = Callable[["HandledClaim"], Any]


class HandledClaim:
    """A claim that was won. The verdict on it is told by `work` or by `give_back`, never by both."""

    def __init__(
        self,
        sender: SyncSender,
        pulse_claims: Claims[Sync],
        claimed: Claimed,
        lease: Lease,
        stopping: threading.Event,
        tally: Tally,
    ) -> None:
        if claimed.task is None:
            raise AssertionError("a claim without its task")
        self.task: Assignment = claimed.task
        self.claimed, self.lease, self.stopping = claimed, lease, stopping
        self._sender, self._tally = sender, tally
        self._claims: Claims[Sync] = Claims(sender)
        self._pulse = Pulse(pulse_claims, claimed.claim_id, lease)
        self._told = threading.Lock()
        # What the server took as the end.
        self.verdict: Verdict | None = None

    def context(self, sender: Any) -> WorkContext[Any]:
        """What the handler is given."""
        return WorkContext(sender, self.claimed, self.lease, self.stopping, self._pulse.latest)

    def work(self, handle: Handle, following: ClaimNext | None) -> tuple[Claimed | None, float]:
        """Start, handle, tell. The claim that came with the telling, and when it was asked for."""
        self._pulse.start()
        try:
            verdict = self._judge(handle) if self._start() else None
            if verdict is None or not self._told.acquire(blocking=False):
                return None, 0.0
            asked_at = now()
            ended = self._tell(verdict, None if self.stopping.is_set() else following)
        finally:
            self._pulse.stop()
        return (ended.next, asked_at) if ended is not None and isinstance(ended.next, Claimed) else (None, 0.0)

    def give_back(self, sender: SyncSender) -> None:
        """The worker stops before the handler ended: release the task, so that others need not wait for the lease."""
        if not self._told.acquire(blocking=False):
            return
        self._pulse.stop()
        try:
            sender.send(Release().report(self.claimed.claim_id, None))
            self._tally.count("released")
        except ClientError as failure:
            _log.warning("%s could not be given back (%s): %s", self.task.task_id, failure.code, failure.message)
        self.lease.finish("stopped")

    def _start(self) -> bool:
        try:
            self._claims.start(self.claimed.claim_id)
        except LeaseLost as lost:
            return self._dropped(lost)
        except (Conflict, NotFound) as refused:
            # Another process that acts as the same agent was told of the same claim, and has begun.
            _log.warning("%s is left alone: %s", self.task.task_id, refused.detail)
            return False
        except ClientError as failure:
            # It is only a word to those who watch; what counts is told at the end.
            _log.warning("%s could not be started (%s): %s", self.task.task_id, failure.code, failure.message)
        return True

    def _judge(self, handle: Handle) -> Verdict | None:
        """What the handler's end means; None when nobody is to be told, because the hold has ended before."""
        try:
            given = handle(self)
        except WorkInterrupted as left:
            return self._interrupted(left)
        except Exception as raised:
            if isinstance(raised, Conflict):
                # It may well speak of this very claim; the server knows.
                self._pulse.ask()
            if self.lease.end is not None:
                return self._interrupted(raised)
            if not isinstance(raised, Fail | Block | Release):
                _log.exception("the handler of %s failed", self.task.task_id)
            return verdict_of(raised)
        if self.lease.end is not None:
            return self._interrupted(None)
        return given if isinstance(given, Done) else Done(given)

    def _interrupted(self, raised: Exception | None) -> Verdict | None:
        """The handler ended after its hold did, or because of it."""
        if self.lease.end is None:
            # Nobody said that it is lost; time alone did. To give it back is right in both cases.
            return Release()
        self._dropped(raised)
        return None

    def _dropped(self, why: Exception | None) -> bool:
        if self.lease.end is None:
            # The refusal is the same for a task that was cancelled; a heartbeat tells which it was.
            self._pulse.ask()
        self.lease.finish("lease_lost")
        task_id, claim_id, detail = self.task.task_id, self.claimed.claim_id, f": {why}" if why is not None else ""
        if self.lease.end == "cancelled":
            self._tally.count("cancelled")
            _log.warning("%s was cancelled while it was worked on (claim %s)", task_id, claim_id)
        elif self.lease.end == "lease_lost":
            self._tally.count("lost")
            _log.error("%s was lost (claim %s); what was done for it changes nothing%s", task_id, claim_id, detail)
        return False

    def _tell(self, verdict: Verdict, following: ClaimNext | None) -> ClaimEnded | None:
        """Tell a verdict until the server has it, as long as the hold may last; under one key however often."""
        sender, request, is_last = self._sender.keyed(self._sender.policy.new_key()), None, False
        while True:
            try:
                request = request or verdict.report(self.claimed.claim_id, following)
                reply = sender.send(request)
            except (LeaseLost, AlreadyTerminal, NotFound) as lost:
                self._dropped(lost)
                return None
            except ClientError as refused:
                if is_passing(refused):
                    if not is_last:
                        # A verdict that was taken looks like a loss to heartbeats: one more try under its key tells.
                        is_last = self.lease.wait_until_lost(_PAUSE_SECONDS)
                        continue
                    _log.error("nobody heard how %s ended (%s)", self.task.task_id, refused.message)
                    self._dropped(refused)
                    return None
                other = after_refusal(refused, verdict)
                _log.error("the end of %s was refused (%s): %s", self.task.task_id, refused.code, refused.message)
                return self._tell(other, following) if other is not None else None
            self.verdict = verdict
            self._tally.count(_COUNTED[type(verdict)])
            return reply if isinstance(reply, ClaimEnded) else None
