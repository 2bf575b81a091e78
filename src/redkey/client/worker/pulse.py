"""The pulse of one hold: a thread that sends heartbeats over connections of their own.

No handler, however busy, and no event loop, however blocked, can keep them back.
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
# They bring cancellations too, which nobody wants to learn of after eight hours.
_LONGEST_SECONDS = 30.0


class Pulse:
    """Heartbeats at a third of the lease, or sooner, until it is stopped or the hold has ended.

    `idle_seconds` says for how long a holder without a handler has done nothing; a handler that runs is active. When
    that is too long for the queue the hold stalls: the pulse rests, and `resume` takes the task up again.
    """

    def __init__(
        self, claims: Claims[Sync], claim_id: str, lease: Lease, idle_seconds: Callable[[], float] | None = None
    ) -> None:
        self._claims, self._claim_id, self._lease, self._idle_seconds = claims, claim_id, lease, idle_seconds
        self._stopped = False
        self._woken = threading.Event()
        self.is_stalled = False
        # Progress that came too soon after the last report: this thread sends the newest of it.
        self.latest = LatestReport(self._woken.set)
        self._thread = threading.Thread(target=self._run, name=f"redkey-pulse-{claim_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it. A heartbeat that is on its way comes to nothing; nobody waits for it."""
        self._stopped = True
        self._woken.set()

    def resume(self) -> None:
        """The holder does something again: if the hold has stalled, ask at once whether the task is still free."""
        if self.is_stalled:
            self._woken.set()

    def _run(self) -> None:
        pause: float | None
        every = min(self._lease.seconds / 3, _LONGEST_SECONDS)
        # A claim that was waited for may have little left of what is sure.
        pause = min(every, max(0.0, self._lease.left_seconds / 2))
        while self._lease.end is None:
            self._rest(pause)
            if self._stopped:
                return
            asked_at = now()
            pause = every if self.ask() else self._retry_seconds()
            if self.is_stalled and self._idle_seconds is not None:
                # The holder may have come back while this was asked.
                pause = 0.0 if self._idle_seconds() < now() - asked_at else None

    def _rest(self, pause: float | None) -> None:
        """Wait until the next heartbeat is due, or until there is a reason for one; send progress that is due."""
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
            said = self._claims.report_progress(self._claim_id, report.text, percent=report.percent)
        except ClientError as failure:
            # It is only a word to those who watch.
            _log.warning("no progress for %s (%s: %s)", self._claim_id, failure.code, failure.message)
            return
        if said.retry_after_seconds is not None:
            self.latest.put_back(report, said.retry_after_seconds)

    def ask(self) -> bool:
        """Send one heartbeat now; whether it was answered."""
        asked_at = now()
        idle_seconds = int(self._idle_seconds()) if self._idle_seconds is not None else None
        try:
            heard = self._claims.heartbeat(self._claim_id, idle_seconds=idle_seconds)
        except NotFound:
            self._lease.finish("lease_lost")
            return True
        except ClientError as failure:
            self._tell(failure)
            return False
        self.is_stalled = heard.state == "stalled"
        if heard.state == "held":
            self._lease.confirmed(asked_at, heard.lease_expires_at or "")
        elif not self.is_stalled:
            self._lease.finish("cancelled" if heard.state == "cancelled" else "lease_lost")
        return True

    def _retry_seconds(self) -> float:
        """Soon, and not together with everybody else whose heartbeat failed."""
        return min(self._lease.seconds / 10, 2.0) * (0.5 + random.random() / 2)  # noqa: S311

    def _tell(self, failure: ClientError) -> None:
        left = self._lease.left_seconds
        level = logging.ERROR if isinstance(failure, ApiError) or left <= 0 else logging.WARNING
        said = f"the claim lasts {left:.0f} s more without one" if left > 0 else "the claim may be lost by now"
        _log.log(level, "no heartbeat for %s (%s: %s); %s", self._claim_id, failure.code, failure.message, said)
