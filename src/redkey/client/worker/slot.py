"""A slot: one thread that works on one task at a time, and the source of its claims."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from redkey.client.calls.queues import Queues
from redkey.client.operation import Sync
from redkey.client.policy import Policy, is_passing
from redkey.client.worker.lease import now
from redkey.client.worker.member import Member
from redkey.client.worker.tally import Tally
from redkey.errors import ClientError
from redkey.shapes.claims import Claimed, ClaimNext, NoTasks, Rejected

_log = logging.getLogger("redkey.client.worker")
# The longest wait of a claim-next. A stop waits for it too, because an interrupted claim may have been won.
WAIT_SECONDS = 3.0
_REJECTED_PAUSE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0

Won = tuple[Claimed, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim request, repeated until it is answered.

    If the claim was won but the answer was lost, the same key returns the same claim.
    """

    key: str
    at: float


class Source(Protocol):
    """A source of claims."""

    # The claim request to send along with the previous verdict, if this source does so.
    following: ClaimNext | None

    def claim(self, asked: Asked) -> Won | None:
        """Return a won claim and the time of its request; None if there was none for a while."""
        ...


class NextSource:
    """Asks the queue for the next task, and waits for it."""

    def __init__(self, member: Member, stopping: threading.Event, tally: Tally) -> None:
        self._queue, self._lease_seconds = member.worker.queue, member.worker.lease_seconds
        self.following: ClaimNext | None = ClaimNext(self._queue, self._lease_seconds)
        self._member, self._stopping, self._tally = member, stopping, tally
        # The lease may start when the request is sent: most of it must be left when the answer arrives.
        self._wait = min(WAIT_SECONDS, self._lease_seconds / 3)

    def claim(self, asked: Asked) -> Won | None:
        queues: Queues[Sync] = Queues(self._member.sender.keyed(asked.key))
        agent_id = self._member.agent_id
        outcome = queues.claim_next(self._queue, agent_id, lease_seconds=self._lease_seconds, wait=self._wait)
        if isinstance(outcome, Claimed):
            return outcome, asked.at
        if not isinstance(outcome, NoTasks):
            self._tally.count(outcome.status)
            why = f"{outcome.reason} {outcome.detail}" if isinstance(outcome, Rejected) else outcome.reason
            self._member.log.rejected(self._queue, why.strip())
            self._stopping.wait(_REJECTED_PAUSE_SECONDS)
        return None


class Slot:
    """Claims and works until the run stops. A permanent refusal ends the run; a temporary failure is retried."""

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
        # Returns the seconds until the next claim is allowed; called at least every second.
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
                # An unanswered claim may have been won, so repeat it until it is answered.
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
