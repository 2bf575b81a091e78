"""Progress of workers: the newest report is seen, few are recorded, and secrets are not."""

from __future__ import annotations

import asyncio

import pytest

from redkey.client import AsyncRedKey, Context, Hold, Invalid, RedKey
from redkey.client.worker.progress import INTERVAL_SECONDS, LatestReport, Report
from tests.client.conftest import Place
from tests.client.worker.crew import task, until, working
from tests.harness.secret_samples import SAMPLES


def test_a_report_waits_for_its_second_and_the_newest_takes_its_place() -> None:
    time, woken = [100.0], []
    latest = LatestReport(lambda: woken.append(time[0]), clock=lambda: time[0])
    assert latest.offer(Report("one", 1)) == 0
    time[0] += 0.25
    assert latest.offer(Report("two", 2)) == pytest.approx(INTERVAL_SECONDS - 0.25)
    latest.offer(Report("three", 3))
    assert (latest.take(), latest.due_seconds, len(woken)) == (None, pytest.approx(0.75), 2)
    time[0] += 0.75
    assert latest.take() == Report("three", 3)
    assert (latest.take(), latest.due_seconds) == (None, None)
    latest.put_back(Report("three", 3), 0.5)
    latest.offer(Report("four", 4))
    latest.put_back(Report("three", 3), 0.5)
    time[0] += 0.5
    assert latest.take() == Report("four", 4), "what is older does not come back over what is newer"
    assert Report.of("x" * 3000, 33.4) == Report("x" * 1999 + "…", 33)


def test_a_chatty_handler_leaves_few_records_and_its_last_word_is_seen(rk: RedKey) -> None:
    made = task(rk)

    @rk.worker(queue="podcast", lease_seconds=60)
    def handle(ctx: Context) -> None:
        for number in range(200):
            ctx.progress(f"row {number}", number / 2)
        # Silent work follows: the last report must come by itself.
        until(rk, "task.progress", made, after=until(rk, "task.progress", made).sequence)

    with working(rk):
        until(rk, "task.complete,task.failed", made)
    found = rk.tasks.get(made)
    assert found.state == "completed"
    assert found.progress is not None
    assert (found.progress.text, found.progress.percent) == ("row 199", 100)
    records = [event for event in rk.tasks.events(made) if event.type == "task.progress"]
    assert len(records) < 10, "200 reports in well under ten seconds"


def test_a_hold_reports_by_await_too_and_a_secret_is_refused(place: Place, rk: RedKey) -> None:
    agent_id = rk.agents.register(card={"name": "ada", "description": "Holds.", "version": "1"}).agent_id
    made = task(rk)

    async def work() -> None:
        async with AsyncRedKey(place.url, place.key) as mine:
            hold = await mine.hold("podcast", agent_id, lease_seconds=60)
            assert isinstance(hold, Hold)
            with pytest.raises(Invalid) as refused:
                await hold.progress(f"the key is {next(iter(SAMPLES.values()))}")
            assert refused.value.code == "secret_detected"
            said = await hold.progress(percent=12.6)
            assert (said.recorded, said.reason) == (False, "coalesced")
            await asyncio.to_thread(until, rk, "task.progress", made)

    asyncio.run(work())
    found = rk.tasks.get(made).progress
    assert found is not None
    assert (found.text, found.percent) == ("", 13)
    with pytest.raises(Invalid) as refused:
        rk.claims.report_progress(rk.tasks.get(made).claim.claim_id, "")  # type: ignore[union-attr]
    assert refused.value.code == "progress_empty"
