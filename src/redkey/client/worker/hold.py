"""One claimed task of a worker, from the won claim to its verdict, which is reported exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from redkey.client.calls.claims import Claims
from redkey.client.connection import SyncSender
from redkey.client.operation import Sync
from redkey.client.policy import beat_policy, is_passing
from redkey.client.worker.context import WorkContext
from redkey.client.worker.lease import Lease, now
from redkey.client.worker.member import Member
from redkey.client.worker.pulse import Pulse
from redkey.client.worker.tally import Tally
from redkey.client.worker.verdict import Block, Done, Fail, Release, Verdict, after_refusal, verdict_of
from redkey.errors import AlreadyTerminal, ClientError, Conflict, LeaseLost, NotFound, WorkInterrupted
from redkey.shapes.claims import Assignment, Claimed, ClaimEnded, ClaimNext

_log = logging.getLogger("redkey.client.worker")
_COUNTED = {Done: "completed", Fail: "failed", Block: "blocked", Release: "released"}
# Between tries to send a verdict, while the server is unreachable and the lease lasts.
_PAUSE_SECONDS = 1.0

Handle = Callable[["HandledClaim"], Any]


class HandledClaim:
    """A won claim. Either `work` or `give_back` reports its verdict, never both."""

    def __init__(self, member: Member, claimed: Claimed, lease: Lease, stopping: threading.Event, tally: Tally) -> None:
        if claimed.task is None:
            raise AssertionError("a claim without its task")
        self.task: Assignment = claimed.task
        self.claimed, self.lease, self.stopping = claimed, lease, stopping
        self._member, self._tally, self._worker_log = member, tally, member.log
        self._begun = now()
        self._claims: Claims[Sync] = Claims(member.sender)
        patience = beat_policy(lease.seconds)
        pulse_claims: Claims[Sync] = Claims(SyncSender(member.pulse, patience))
        self._pulse = Pulse(pulse_claims, claimed.claim_id, lease)
        self._told = threading.Lock()
        # The verdict that the server accepted.
        self.verdict: Verdict | None = None

    def context(self, sender: Any) -> WorkContext[Any]:
        """The context for the handler."""
        return WorkContext(sender, self.claimed, self.lease, self.stopping, self._pulse.latest, self._worker_log)

    def work(self, handle: Handle, following: ClaimNext | None) -> tuple[Claimed | None, float]:
        """Start, run the handler and report. Return the next claim that came with the reply, and its request time."""
        self._worker_log.claimed(self.task)
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

    def give_back(self) -> None:
        """The worker stops before the handler has ended: release the task instead of letting the lease expire."""
        if not self._told.acquire(blocking=False):
            return
        self._pulse.stop()
        try:
            self._member.brief.send(Release().report(self.claimed.claim_id, None))
            self._tally.count("released")
            self._ended("released")
        except ClientError as failure:
            _log.warning("%s could not be given back (%s): %s", self.task.task_id, failure.code, failure.message)
        self.lease.finish("stopped")

    def _start(self) -> bool:
        try:
            self._claims.start(self.claimed.claim_id)
        except LeaseLost as lost:
            return self._dropped(lost)
        except (Conflict, NotFound) as refused:
            # Another process that acts as the same agent got the same claim and has started it.
            _log.warning("%s is left alone: %s", self.task.task_id, refused.detail)
            return False
        except ClientError as failure:
            # Starting only informs people who watch; the verdict counts.
            _log.warning("%s could not be started (%s): %s", self.task.task_id, failure.code, failure.message)
        return True

    def _judge(self, handle: Handle) -> Verdict | None:
        """Turn the handler's result into a verdict; None if the hold has already ended."""
        try:
            result = handle(self)
        except WorkInterrupted as left:
            return self._interrupted(left)
        except Exception as raised:
            if isinstance(raised, Conflict):
                # The refusal may concern this very claim; ask the server.
                self._pulse.ask()
            if self.lease.end is not None:
                return self._interrupted(raised)
            if not isinstance(raised, Fail | Block | Release):
                _log.exception("the handler of %s failed", self.task.task_id)
            return verdict_of(raised)
        if self.lease.end is not None:
            return self._interrupted(None)
        return result if isinstance(result, Done) else Done(result)

    def _interrupted(self, raised: Exception | None) -> Verdict | None:
        """The handler ended after its hold did, or because of it."""
        if self.lease.end is None:
            # The server has not reported a loss; only the lease time ran out. Releasing is right in both cases.
            return Release()
        self._dropped(raised)
        return None

    def _dropped(self, why: Exception | None) -> bool:
        if self.lease.end is None:
            # The refusal is the same for a cancelled task; a heartbeat finds out which it is.
            self._pulse.ask()
        self.lease.finish("lease_lost")
        detail = f": {why}" if why is not None else ""
        if self.lease.end == "cancelled":
            self._tally.count("cancelled")
            self._ended("cancelled")
        elif self.lease.end == "lease_lost":
            self._tally.count("lost")
            self._ended("lost", f"what was done under {self.claimed.claim_id} changes nothing{detail}")
        return False

    def _ended(self, outcome: str, reason: str = "") -> None:
        self._worker_log.ended(self.task, outcome, now() - self._begun, reason)

    def _tell(self, verdict: Verdict, following: ClaimNext | None) -> ClaimEnded | None:
        """Send a verdict, always under one key, until the server has it or the hold may have ended."""
        sender = self._member.sender.keyed(self._member.sender.policy.new_key())
        request, is_last = None, False
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
                        # After an accepted verdict, heartbeats report a loss: one more try under the same key shows
                        # which it is.
                        is_last = self.lease.wait_until_lost(_PAUSE_SECONDS)
                        continue
                    _log.error("the end of %s did not reach the server (%s)", self.task.task_id, refused.message)
                    self._dropped(refused)
                    return None
                other = after_refusal(refused, verdict)
                _log.error("the end of %s was refused (%s): %s", self.task.task_id, refused.code, refused.message)
                return self._tell(other, following) if other is not None else None
            self.verdict = verdict
            counted = _COUNTED[type(verdict)]
            self._tally.count(counted)
            reason = verdict.reason if isinstance(verdict, Fail | Block) else ""
            self._ended("done" if counted == "completed" else counted, reason)
            return reply if isinstance(reply, ClaimEnded) else None
