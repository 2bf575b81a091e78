"""The pulse of one hold: a thread that sends heartbeats over its own connections.

So a busy handler or a blocked event loop cannot delay heartbeats.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from redkey.client.calls.claims import Claims
from redkey.client.operation import Sync
from redkey.client.worker.lease import Lease, now
from redkey.client.worker.progress import LatestReport
from redkey.errors import ApiError, ClientError, NotFound

_log = logging.getLogger("redkey.client.worker")
# Heartbeats also report cancellations, so even a long lease has a heartbeat this often.
_LONGEST_SECONDS = 30.0


class Pulse:
    """Sends heartbeats at a third of the lease, or sooner, until it is stopped or the hold ends.

    `idle_seconds` returns for how long a holder without a handler was idle; a running handler is active. If the holder
    is idle for longer than the queue allows, the hold stalls: the pulse pauses, and `resume` claims the task again.
    """

    def __init__(
        self, claims: Claims[Sync], claim_id: str, lease: Lease, idle_seconds: Callable[[], float] | None = None
    ) -> None:
        self._claims, self._claim_id, self._lease, self._idle_seconds = claims, claim_id, lease, idle_seconds
        self._stopped = False
        self._woken = threading.Event()
        self.is_stalled = False
        # Progress that came too soon after the last report: this thread sends the newest.
        self.latest = LatestReport(self._woken.set)
        self._thread = threading.Thread(target=self._run, name=f"redkey-pulse-{claim_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the pulse, without waiting for a heartbeat that is being sent."""
        self._stopped = True
        self._woken.set()

    def resume(self) -> None:
        """The holder is active again: if the hold has stalled, ask at once whether the task is still free."""
        if self.is_stalled:
            self._woken.set()

    def _run(self) -> None:
        pause: float | None
        every = min(self._lease.seconds / 3, _LONGEST_SECONDS)
        # If the claim was waited for, little of its certain time may be left.
        pause = min(every, max(0.0, self._lease.left_seconds / 2))
        while self._lease.end is None:
            self._rest(pause)
            if self._stopped:
                return
            asked_at = now()
            pause = every if self.ask() else self._retry_seconds()
            if self.is_stalled and self._idle_seconds is not None:
                # The holder may have become active during this request.
                pause = 0.0 if self._idle_seconds() < now() - asked_at else None

    def _rest(self, pause: float | None) -> None:
        """Wait until the next heartbeat is due or requested; send progress that is due."""
        until = None if pause is None else now() + pause
        while not self._stopped:
            left = None if until is None else max(0.0, until - now())
            due = self.latest.due_seconds
            is_woken = self._woken.wait(left if due is None else due if left is None else min(left, due))
            self._woken.clear()
            if self._stopped or (is_woken and self.is_stalled):
                return
            self._report()
            if until is not None and now() >= until:
                return

    def _report(self) -> None:
        report = self.latest.take()
        if report is None:
            return
        try:
            reply = self._claims.report_progress(self._claim_id, report.text, percent=report.percent)
        except ClientError as failure:
            # Progress only informs people who watch.
            _log.warning("no progress for %s (%s: %s)", self._claim_id, failure.code, failure.message)
            return
        if reply.retry_after_seconds is not None:
            self.latest.put_back(report, reply.retry_after_seconds)

    def ask(self) -> bool:
        """Send one heartbeat now; return whether it was answered."""
        asked_at = now()
        idle_seconds = int(self._idle_seconds()) if self._idle_seconds is not None else None
        try:
            reply = self._claims.heartbeat(self._claim_id, idle_seconds=idle_seconds)
        except NotFound:
            self._lease.finish("lease_lost")
            return True
        except ClientError as failure:
            self._tell(failure)
            return False
        self.is_stalled = reply.state == "stalled"
        if reply.state == "held":
            self._lease.confirmed(asked_at, reply.lease_expires_at or "")
        elif not self.is_stalled:
            self._lease.finish("cancelled" if reply.state == "cancelled" else "lease_lost")
        return True

    def _retry_seconds(self) -> float:
        """Return a short random pause, so that not all clients retry at the same time."""
        return min(self._lease.seconds / 10, 2.0) * (0.5 + random.random() / 2)  # noqa: S311

    def _tell(self, failure: ClientError) -> None:
        left = self._lease.left_seconds
        level = logging.ERROR if isinstance(failure, ApiError) or left <= 0 else logging.WARNING
        consequence = f"the claim lasts {left:.0f} s more without one" if left > 0 else "the claim may be lost by now"
        _log.log(level, "no heartbeat for %s (%s: %s); %s", self._claim_id, failure.code, failure.message, consequence)
