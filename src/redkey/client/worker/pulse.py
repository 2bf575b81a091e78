"""The pulse of one hold: a thread that sends heartbeats over connections of their own.

No handler, however busy, and no event loop, however blocked, can keep them back.
"""

from __future__ import annotations

import logging
import random
import threading

from redkey.client.calls.claims import Claims
from redkey.client.operation import Sync
from redkey.client.worker.lease import Lease, now
from redkey.errors import ApiError, ClientError, NotFound

_log = logging.getLogger("redkey.client.worker")
# They bring cancellations too, which nobody wants to learn of after eight hours.
_LONGEST_SECONDS = 30.0


class Pulse:
    """Heartbeats at a third of the lease, or sooner, until it is stopped or the hold has ended."""

    def __init__(self, claims: Claims[Sync], claim_id: str, lease: Lease) -> None:
        self._claims, self._claim_id, self._lease = claims, claim_id, lease
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"redkey-pulse-{claim_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End it. A heartbeat that is on its way comes to nothing; nobody waits for it."""
        self._stopped.set()

    def _run(self) -> None:
        every = pause = min(self._lease.seconds / 3, _LONGEST_SECONDS)
        while not self._stopped.wait(pause) and self._lease.end is None:
            pause = every if self.ask() else self._retry_seconds()

    def ask(self) -> bool:
        """Send one heartbeat now; whether it was answered."""
        asked_at = now()
        try:
            heard = self._claims.heartbeat(self._claim_id)
        except NotFound:
            self._lease.finish("lease_lost")
            return True
        except ClientError as failure:
            self._tell(failure)
            return False
        if heard.state == "held":
            self._lease.confirmed(asked_at, heard.lease_expires_at or "")
        else:
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
