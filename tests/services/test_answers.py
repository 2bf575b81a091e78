"""Kept replies: the first one counts, the window ends, and rows are read only where there may be one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from redkey.commands.decision import Refused
from redkey.ledger.ports import Unit
from redkey.reducers import world
from redkey.services import answers
from redkey.services.answers import Answers, KeepAnswer, KeptAnswer
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import HandClock


def kept(reply: str, body: str = "body") -> KeptAnswer:
    return KeptAnswer(body, 200, "application/json", reply.encode())


class Shelf:
    """One process's view of the kept answers of one topic."""

    def __init__(self, clock: HandClock, disk: MemoryDisk, topic: str = "") -> None:
        self.store, self.answers = MemoryStore(clock, disk), Answers()
        self.topic = topic
        if not topic:
            self.topic = self.store.create_topic()

    def find(self, idem: str, body: str = "body") -> KeptAnswer | None:
        with self.store.write(self.topic) as unit:
            return self.answers.find(unit, self.topic, idem, body)

    def keep(self, idem: str, answer: KeptAnswer) -> KeptAnswer:
        with self.store.write(self.topic) as unit:
            now = unit.next_timestamp(self.topic)
            self.answers.make_room(unit, self.topic, now, 1)
            return self.answers.keep(unit, self.topic, KeepAnswer(idem, answer), now)

    def count(self) -> int:
        return len(self.store.rows(self.topic, "answer", "kept"))

    def expired(self, idem: str) -> None:
        """A request is refused because its answer has expired."""
        with pytest.raises(Refused) as refused:
            self.find(idem)
        assert (refused.value.status, refused.value.code) == (410, "idempotency_key_expired")


def test_the_first_answer_counts_in_every_process() -> None:
    clock, disk = HandClock(), MemoryDisk()
    one = Shelf(clock, disk)
    other = Shelf(clock, disk, one.topic)
    assert other.find("k") is None
    assert one.keep("k", kept("first")) == kept("first")
    assert other.find("k") == kept("first")
    assert other.keep("k", kept("second")) == kept("first")
    assert Shelf(clock, disk, one.topic).find("k") == kept("first")
    with pytest.raises(Refused, match="another body"):
        one.find("k", "other body")


def test_an_answer_that_was_not_committed_was_not_kept() -> None:
    shelf = Shelf(HandClock(), MemoryDisk())
    with suppress(RuntimeError), shelf.store.write(shelf.topic) as unit:
        shelf.answers.keep(unit, shelf.topic, KeepAnswer("k", kept("lost")), 1)
        raise RuntimeError
    shelf.answers.forget(shelf.topic)
    assert shelf.find("k") is None


def test_answers_leave_after_a_day() -> None:
    clock, disk = HandClock(), MemoryDisk()
    shelf = Shelf(clock, disk)
    for index in range(10):
        shelf.keep(f"old-{index}", kept("old"))
    clock.advance(24 * 3600 - 1)
    assert shelf.find("old-0") == kept("old")
    clock.advance(2)
    for index in range(5):
        shelf.keep(f"new-{index}", kept("new"))
    assert shelf.count() == 5
    shelf.expired("old-0")
    with pytest.raises(Refused):
        shelf.keep("old-0", kept("another"))
    Shelf(clock, disk, shelf.topic).expired("old-0")
    assert shelf.find("new-0") == kept("new")


def test_a_workspace_keeps_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers.IDEMPOTENCY_LIMIT == world.IDEMPOTENCY_LIMIT == 250_000
    monkeypatch.setattr(answers, "IDEMPOTENCY_LIMIT", 8)
    clock = HandClock()
    shelf = Shelf(clock, MemoryDisk())
    for index in range(20):
        clock.advance(1)
        shelf.keep(f"k-{index}", kept("answer"))
    assert shelf.count() == 8
    shelf.expired("k-11")
    assert shelf.find("k-12") == kept("answer")


def test_a_key_that_is_new_costs_no_read_while_nobody_else_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(HandClock(), MemoryDisk())
    shelf.keep("k", kept("answer"))
    reads: list[str] = []
    found = answers.kept_answer

    def counted(reader: Unit, topic: str, idem: str, body: str) -> KeptAnswer | None:
        reads.append(idem)
        return found(reader, topic, idem, body)

    monkeypatch.setattr(answers, "kept_answer", counted)
    assert [shelf.find(idem) for idem in ("a", "b", "k")] == [None, None, kept("answer")]
    assert reads == ["k"]
