"""Progress: the last report of the holder is kept, one record a second at most, and reporting counts as activity."""

from __future__ import annotations

import pytest

from redkey.commands.claims import ClaimTask, HeartbeatClaim, ReleaseClaim, ReportProgress
from redkey.commands.registry import UpdateQueue
from redkey.reducers.world import SECOND
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.invariants import check_topic


def reported(desk: Desk, task_id: str) -> tuple[int, str]:
    task = desk.world.tasks[task_id]
    return task.progress_percent, task.progress_sha256


def test_the_last_report_is_kept_and_survives_a_reload(desk: Desk) -> None:
    task = desk.task()
    claim = desk.hold(task, desk.agent("ada"))
    desk.do(ReportProgress(claim, 20, ref_of("begun")))
    desk.clock.advance(1.1)
    desk.do(ReportProgress(claim, 60, ref_of("half")))
    assert reported(desk, task) == (60, ref_of("half").sha256)
    desk.clock.advance(1.1)
    desk.do(ReportProgress(claim, None, ref_of("stuck")))
    assert reported(desk, task) == (-1, ref_of("stuck").sha256), "a report replaces the one before it whole"
    desk.reload()
    assert reported(desk, task) == (-1, ref_of("stuck").sha256)
    check_topic(desk.store, desk.topic)


def test_progress_of_a_claim_is_recorded_once_a_second_and_the_reply_names_the_next_time(desk: Desk) -> None:
    task = desk.task()
    claim = desk.hold(task, desk.agent("ada"))
    desk.do(ReportProgress(claim, 1))
    before = desk.world.sequence
    answers = [desk.do(ReportProgress(claim, percent)).answer for percent in range(2, 50)]
    assert desk.world.sequence == before, "a chatty worker does not fill the ledger"
    for answer in answers:
        assert answer is not None
        assert answer["reason"] == "too_often"
        assert 0 < answer["wait_nanoseconds"] <= SECOND
    desk.clock.advance(1.1)
    assert desk.do(ReportProgress(claim, 50)).records
    assert reported(desk, task) == (50, "")


def test_the_next_hold_begins_without_a_report(desk: Desk) -> None:
    task, bob = desk.task(), desk.agent("bob")
    first = desk.hold(task, desk.agent("ada"))
    desk.do(ReportProgress(first, 60, ref_of("half")))
    desk.do(ReleaseClaim(first))
    second = desk.hold(task, bob)
    assert reported(desk, task) == (-1, "")
    assert desk.do(ReportProgress(second, 1)).records, "the second of the last holder is not counted for the next"


def test_a_report_keeps_the_hold_of_an_idle_process(desk: Desk) -> None:
    ada, bob, task = desk.agent("ada"), desk.agent("bob"), desk.task()
    desk.do(UpdateQueue(QUEUE, {"idle_seconds": 60}))
    claim = desk.hold(task, ada)
    desk.clock.advance(50)
    desk.do(ReportProgress(claim, 60))
    desk.clock.advance(50)
    answer = desk.do(HeartbeatClaim(claim, 100)).answer
    assert answer is None or answer["state"] == "held"
    assert desk.do(ClaimTask(task, bob, 60)).records[-1].event.type == "task.claim_missed"
    desk.clock.advance(11)
    desk.do(HeartbeatClaim(claim, 111))
    assert desk.types()[-1] == "task.stalled"


@pytest.mark.parametrize("percent", [0, 100])
def test_a_late_holder_that_reports_resumes_its_task(desk: Desk, percent: int) -> None:
    task = desk.task()
    claim = desk.hold(task, desk.agent("ada"), 5)
    desk.do(ReportProgress(claim, 1))
    desk.clock.advance(6)
    desk.tick()
    desk.do(ReportProgress(claim, percent))
    assert desk.types()[-2:] == ["task.lease_extended", "task.progress"]
    assert reported(desk, task) == (percent, "")
