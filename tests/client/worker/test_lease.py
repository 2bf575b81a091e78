"""The lease by the holder's own clock: what it may believe, and from when on it must not."""

from __future__ import annotations

import threading
import time

import pytest

from redkey.client import WorkInterrupted
from redkey.client.worker.lease import End, Lease, LossSignal, now


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(clock: Clock, seconds: float = 60.0, asked_ago: float = 0.0) -> Lease:
    return Lease(seconds, clock.time - asked_ago, "t1", clock)


def test_a_lease_counts_from_when_it_was_asked_for(clock: Clock) -> None:
    held = lease(clock, asked_ago=5.0)
    assert held.left_seconds == 55.0
    clock.time += 54.9
    assert not held.is_lost
    clock.time += 0.1
    assert held.is_lost


def test_silence_of_the_server_is_no_loss_before_the_deadline(clock: Clock) -> None:
    held = lease(clock)
    clock.time += 59
    held.check()
    clock.time += 1
    with pytest.raises(WorkInterrupted) as raised:
        held.check()
    assert raised.value.code == "lease_lost"


def test_an_extended_lease_counts_from_when_the_heartbeat_was_sent(clock: Clock) -> None:
    held = lease(clock)
    clock.time += 40
    sent = clock.time
    clock.time += 3
    held.confirmed(sent, "t2")
    assert held.left_seconds == 57.0


def test_a_lease_that_was_not_extended_has_at_least_half_left(clock: Clock) -> None:
    held = lease(clock, asked_ago=29.0)
    clock.time += 5
    held.confirmed(clock.time, "t1")
    assert held.left_seconds == 30.0


def test_a_deadline_that_is_never_moved_is_not_believed_for_ever(clock: Clock) -> None:
    """A claim lives seven days at most; at its end the server repeats a deadline that comes ever nearer."""
    held = lease(clock)
    for _ in range(3):
        clock.time += 15
        held.confirmed(clock.time, "t1")
    assert held.left_seconds == 15.0


def test_a_confirmation_never_shortens_what_is_known(clock: Clock) -> None:
    held = lease(clock)
    held.confirmed(clock.time - 30, "t1")
    assert held.left_seconds == 60.0


def test_a_hold_that_is_confirmed_after_all_is_held_again(clock: Clock) -> None:
    held = lease(clock)
    lost = LossSignal(held)
    clock.time += 61
    assert lost.is_set()
    held.confirmed(clock.time, "t2")
    assert not lost.is_set()
    assert not lost


def test_the_word_of_the_server_is_final(clock: Clock) -> None:
    held = lease(clock)
    ended: list[str] = []
    held.watch(lambda: ended.append("first"))
    held.finish("lease_lost")
    held.finish("cancelled")
    held.watch(lambda: ended.append("late"))
    held.confirmed(clock.time, "t2")
    assert held.end == "lease_lost"
    assert held.is_lost
    assert ended == ["first", "late"]


@pytest.mark.parametrize("end", ["cancelled", "stopped", "lease_lost"])
def test_whichever_way_a_hold_ended_there_is_no_use_in_working_on(clock: Clock, end: End) -> None:
    held = lease(clock)
    held.finish(end)
    assert LossSignal(held).wait(0)
    with pytest.raises(WorkInterrupted) as raised:
        held.check()
    assert raised.value.code == end


def test_whoever_waits_for_the_loss_is_woken_by_it() -> None:
    held = Lease(3600, now(), "t1")
    lost = LossSignal(held)
    threading.Timer(0.05, held.finish, ["lease_lost"]).start()
    assert lost.wait(30)


def test_whoever_waits_for_the_loss_is_woken_by_the_deadline() -> None:
    assert LossSignal(Lease(0.05, now(), "t1")).wait(30)
    assert not LossSignal(Lease(3600, now(), "t1")).wait(0.01)


def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert abs(now() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 60
