"""The ledger clock: strictly increasing, true to passing time, and deaf to steps of the wall clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redkey.ledger.clock import SLEW, LedgerClock
from redkey.ledger.record import NANOSECONDS
from redkey.stores.clock import SystemClock
from tests.conformance.stores.harness import NOON, ManualClock

HOUR = 3600 * NANOSECONDS


def test_it_starts_at_wall_time() -> None:
    assert LedgerClock(ManualClock()).after(0) == NOON + 1


def test_it_starts_behind_the_last_record_when_that_is_later() -> None:
    clock = ManualClock()
    ledger = LedgerClock(clock)
    assert ledger.after(NOON + HOUR) == NOON + HOUR + 1
    clock.pass_time(NANOSECONDS)
    # It leans back towards wall time, but goes on.
    assert ledger.after(0) == NOON + HOUR + 1 + NANOSECONDS - NANOSECONDS // SLEW


def test_it_stands_on_a_clock_that_stands_and_still_never_repeats() -> None:
    ledger = LedgerClock(ManualClock())
    drawn = [ledger.after(0) for _ in range(1000)]
    assert drawn == list(range(NOON + 1, NOON + 1001))


def test_a_step_back_does_not_freeze_it() -> None:
    clock = ManualClock()
    ledger = LedgerClock(clock)
    before = ledger.after(0)
    clock.step(-24 * HOUR)
    clock.pass_time(60 * NANOSECONDS)
    assert ledger.after(0) - before == 57 * NANOSECONDS


def test_a_step_forward_does_not_take_it_along() -> None:
    clock = ManualClock()
    ledger = LedgerClock(clock)
    before = ledger.after(0)
    clock.step(24 * HOUR)
    clock.pass_time(60 * NANOSECONDS)
    assert ledger.after(0) - before == 63 * NANOSECONDS


def test_it_comes_back_to_wall_time_and_stays_there() -> None:
    for step in (HOUR, -HOUR):
        clock = ManualClock()
        ledger = LedgerClock(clock)
        clock.step(step)
        for _ in range(SLEW * 60 + 10):
            clock.pass_time(60 * NANOSECONDS)
            ledger.after(0)
        assert abs(ledger.after(0) - clock.wall()) <= 1


def test_a_monotonic_clock_that_falls_back_is_no_time_passing() -> None:
    clock = ManualClock()
    ledger = LedgerClock(clock)
    first = ledger.after(0)
    clock._monotonic -= HOUR
    assert ledger.after(0) == first + 1


def test_a_topic_that_is_ahead_does_not_take_the_others_along() -> None:
    clock = ManualClock()
    store = LedgerClock(clock)
    ahead, other = LedgerClock(store), LedgerClock(store)
    assert ahead.after(NOON + HOUR) > NOON + HOUR
    assert other.after(NOON) < NOON + 100
    clock.pass_time(NANOSECONDS)
    assert 0.9 * NANOSECONDS < ahead.after(0) - NOON - HOUR < NANOSECONDS
    assert abs(other.after(0) - NOON - NANOSECONDS) < 100


def test_a_topic_used_again_after_a_step_goes_by_the_stores_time() -> None:
    clock = ManualClock()
    store = LedgerClock(clock)
    LedgerClock(store).after(0)
    clock.step(24 * HOUR)
    clock.pass_time(NANOSECONDS)
    assert LedgerClock(store).after(NOON) < NOON + 2 * NANOSECONDS


moves = st.lists(
    st.tuples(
        st.integers(-10 * HOUR, 10 * HOUR),
        st.integers(0, 10 * HOUR),
        st.integers(NOON - 10 * HOUR, NOON + 10 * HOUR),
    ),
    min_size=1,
    max_size=30,
)


@given(moves)
def test_whatever_the_clocks_do_time_rises_and_keeps_its_pace(moves: list[tuple[int, int, int]]) -> None:
    clock = ManualClock()
    ledger = LedgerClock(clock)
    last = ledger.after(0)
    for step, passed, timestamp in moves:
        clock.step(step)
        clock.pass_time(passed)
        now = ledger.after(timestamp)
        assert now > last
        assert now > timestamp
        assert now - last >= passed - passed // SLEW
        assert now <= max(last + passed + passed // SLEW, last + 1, timestamp + 1)
        last = now


def test_the_machines_clock_is_in_nanoseconds_and_passes() -> None:
    clock = SystemClock()
    assert clock.wall() > 1_700_000_000 * NANOSECONDS
    assert 0 <= clock.monotonic() <= clock.monotonic()
