"""Turns: one workspace alone fills its units; several share them, and no caller waits behind a long line."""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.services.submission import Submission
from redkey.services.turns import BATCH_LIMIT, UNIT_SECONDS, Turns


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def submission(topic: str, name: object = "act") -> Submission:
    return Submission(topic, Actor("", "", frozenset()), name, (), "", "", lambda _: None)


def taken(turns: Turns) -> list[tuple[str, object]]:
    return [(one.topic, one.command) for one in turns.take()]


def test_one_workspace_alone_fills_its_units() -> None:
    turns = Turns(Clock())
    for index in range(1, BATCH_LIMIT + 11):
        turns.add(submission("a", index))
    turns.measured(10, 1.0, 0.1)
    assert [len(turns.take()), len(turns.take()), len(turns)] == [BATCH_LIMIT, 10, 0]


def test_a_request_of_another_workspace_is_in_the_next_unit_however_long_the_line() -> None:
    clock = Clock()
    turns = Turns(clock)
    for index in range(1, 501):
        turns.add(submission("greedy", index))
    turns.add(submission("victim", "small"))
    # What one costs says how many a unit may take.
    for _ in range(30):
        turns.measured(1, UNIT_SECONDS / 10, 0.0)
    unit = taken(turns)
    assert unit[:3] == [("greedy", 1), ("victim", "small"), ("greedy", 2)]
    assert 8 <= len(unit) <= 10
    assert len(turns) == 501 - len(unit)
    # The order within a workspace is kept.
    assert [name for topic, name in unit + taken(turns) if topic == "greedy"] == [*range(1, 2 * len(unit))]
    clock.now += 2
    assert len(turns.take()) == min(BATCH_LIMIT, 501 - 2 * len(unit)), "alone again"


def test_a_slow_disk_makes_larger_units_worth_it() -> None:
    turns = Turns(Clock())
    turns.add(submission("a"))
    turns.add(submission("b"))
    for _ in range(30):
        turns.measured(1, UNIT_SECONDS / 10, UNIT_SECONDS * 4)
    assert 35 <= turns.unit_limit <= 40


def test_three_workspaces_take_turns() -> None:
    turns = Turns(Clock())
    for topic, count in (("a", 3), ("b", 2), ("c", 1)):
        for index in range(1, count + 1):
            turns.add(submission(topic, index))
    assert taken(turns) == [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("a", 3)]


def test_what_could_not_be_done_comes_first_again_in_its_order() -> None:
    turns = Turns(Clock())
    for index in range(1, 6):
        turns.add(submission("a", index))
    batch = turns.take()
    turns.add(submission("a", 6))
    for one in batch[1:3]:
        one.alone = True
    turns.put_back(batch)
    assert [[name for _, name in taken(turns)] for _ in range(4)] == [[1], [2], [3], [4, 5, 6]]


def test_ticks_are_nobodys_requests() -> None:
    turns = Turns(Clock())
    turns.add(submission("a"))
    turns.add(submission("b", None))
    assert not turns.is_shared
    turns.add(submission("b"))
    assert turns.is_shared
    assert len(turns.clear()) == 3
    assert len(turns) == 0
