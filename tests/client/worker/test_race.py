"""The race, made to go wrong on purpose: what a racer does after it missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import httpx2

from redkey.client import Claimed, Context, RedKey
from redkey.client.worker.race import Candidates
from tests.client.conftest import Place
from tests.client.worker.crew import task, until, working


class Hindered(httpx2.HTTPTransport):
    """Counts claims by task, and lets something happen just before each one reaches the server."""

    def __init__(self, before: Callable[[str], None]) -> None:
        super().__init__(verify=False)
        self.claims: Counter[str] = Counter()
        self._before = before

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/claim"):
            task_id = request.url.path.split("/")[2]
            self.claims[task_id] += 1
            self._before(task_id)
        return super().handle_request(request)


def test_a_missed_task_is_not_claimed_again_before_its_next_task_available(place: Place, rk: RedKey) -> None:
    rk.queues.create("podcast")
    rival = rk.agents.register(card={"name": "Rival", "version": "1"}).agent_id
    taken: dict[str, str] = {}

    def snatch(task_id: str) -> None:
        """The rival is a moment faster, once."""
        if not taken:
            claimed = rk.tasks.claim(task_id, rival)
            assert isinstance(claimed, Claimed)
            taken[task_id] = claimed.claim_id

    hindered = Hindered(snatch)
    with RedKey(place.url, place.key, transport=hindered) as racing:

        @racing.worker(queue="podcast", agent="racer", claim="race", lease_seconds=5)
        def handle(ctx: Context) -> str:
            return "won"

        with working(racing) as run:
            missed = task(rk)
            until(rk, "task.claim_missed")
            # By the time that two others are done, a racer that tries again would have.
            for other in [task(rk), task(rk)]:
                until(rk, "task.complete", other)
            assert hindered.claims[missed] == 1
            rk.claims.release(taken[missed])
            until(rk, "task.complete", missed)
    assert hindered.claims[missed] == 2
    assert (run.tally.missed, run.tally.completed) == (1, 3)


def test_candidates_are_taken_in_order_and_once() -> None:
    candidates = Candidates()
    for name in ("a", "b", "a", "c"):
        candidates.add(name)
    candidates.drop("b")
    candidates.drop("unknown")
    assert [candidates.take(0), candidates.take(0), candidates.take(0)] == ["a", "c", None]
    candidates.add("d")
    candidates.end()
    assert candidates.take(60) is None
