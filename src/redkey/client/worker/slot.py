"""A slot: one thread that works on one task at a time, and where its next claim comes from."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from redkey.client.calls.queues import Queues
from redkey.client.connection import SyncSender
from redkey.client.operation import Sync
from redkey.client.policy import Policy, is_passing
from redkey.client.worker.lease import now
from redkey.client.worker.tally import Tally
from redkey.errors import ClientError
from redkey.shapes.claims import Claimed, ClaimNext, NoTasks, Rejected

_log = logging.getLogger("redkey.client.worker")
# How long a claim-next waits for a task. A stop waits for it too, because a claim that is cut off may have been won.
WAIT_SECONDS = 3.0
_REJECTED_PAUSE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0

Won = tuple[Claimed, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim, asked for until it is answered: if it was won and not heard of, its key brings it again."""

    key: str
    at: float


class Source(Protocol):
    """Where claims come from."""

    # The claim to ask for with the end of the one before, where that is the way of this source.
    following: ClaimNext | None

    def claim(self, asked: Asked) -> Won | None:
        """A claim that was won, and when it was asked for; None when there was nothing for a while."""
        ...


class NextSource:
    """Asks the queue for whatever is next, and waits for it there."""

    def __init__(
        self,
        sender: SyncSender,
        queue: str,
        agent_id: str,
        lease_seconds: int,
        stopping: threading.Event,
        tally: Tally,
    ) -> None:
        self.following: ClaimNext | None = ClaimNext(queue, lease_seconds)
        self._sender, self._queue, self._agent_id = sender, queue, agent_id
        self._lease_seconds, self._stopping, self._tally = lease_seconds, stopping, tally
        # The hold may have begun as early as the request was sent: most of the lease must be left when it is answered.
        self._wait = min(WAIT_SECONDS, lease_seconds / 3)

    def claim(self, asked: Asked) -> Won | None:
        queues: Queues[Sync] = Queues(self._sender.keyed(asked.key))
        found = queues.claim_next(self._queue, self._agent_id, lease_seconds=self._lease_seconds, wait=self._wait)
        if isinstance(found, Claimed):
            return found, asked.at
        if not isinstance(found, NoTasks):
            self._tally.count(found.status)
            why = f"{found.reason} {found.detail}" if isinstance(found, Rejected) else found.reason
            _log.warning("%s may not claim from %s: %s", self._agent_id, self._queue, why.strip())
            self._stopping.wait(_REJECTED_PAUSE_SECONDS)
        return None


class Slot:
    """Claims and works until the run stops. What is refused for good ends the run; what passes is waited out."""

    def __init__(
        self,
        source: Source,
        work: Callable[[Claimed, float, ClaimNext | None], tuple[Claimed | None, float]],
        give_back: Callable[[Claimed], None],
        stopping: threading.Event,
        fail: Callable[[BaseException], None],
        pause: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._source, self._work, self._give_back = source, work, give_back
        self._stopping, self._fail, self._policy = stopping, fail, Policy()
        # Seconds before the next claim may be asked for; it is asked again at least every second.
        self._pause = pause

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._fail(error)

    def _run(self) -> None:
        failures, won, asked = 0, None, None
        while not self._stopping.is_set():
            if won is None:
                # A claim that was asked for and not answered may have been won: it is asked for to its end.
                if asked is None and (seconds := self._pause()) > 0:
                    self._stopping.wait(min(seconds, _PAUSE_SECONDS))
                    continue
                asked = asked or Asked(self._policy.new_key(), now())
                try:
                    won = self._source.claim(asked)
                    failures, asked = 0, None
                except ClientError as failure:
                    if not is_passing(failure):
                        raise
                    failures += 1
                    _log.warning("no claim for now (%s): %s", failure.code, failure.message)
                    self._stopping.wait(self._policy.back_off_seconds(failures))
                continue
            claimed, asked_at = self._work(*won, self._source.following if self._pause() <= 0 else None)
            won = (claimed, asked_at) if claimed is not None else None
        if won is not None:
            self._give_back(won[0])
