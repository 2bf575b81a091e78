"""What a unit of work promises: all of it or nothing, one at a time, over several topics, durable when it ends."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from redkey.errors import AppendRefused, StoreMisused, WriterBusy
from redkey.ledger.content import body
from redkey.ledger.ports import Row, SequencedStore, Unit
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import Broken, Maker, append, entries, entry, new_topic, opened, spoil


def note(size: int) -> bytes:
    return b"redkey/log/wk_1/e1\n%d\nroot\n\n\xe2\x80\x94 signed\n" % size


def fill(unit: Unit, topic: str) -> None:
    """Something in every table."""
    head = unit.head(topic).sequence
    unit.append(topic, entries(head + 1, 300, "agt_1"), head)
    unit.put_rows(topic, [Row("task", f"task_{head}", b"{}", "open", 7)])
    unit.put_content(topic, [body(b"small"), body(b"large" * 10_000)])
    unit.count(topic, [("tasks", 5)])
    unit.put_checkpoint(topic, head + 300, note(head + 300))
    unit.put_setting("log_id", f"log-{head}")


def seen(store: SequencedStore, topic: str) -> tuple[object, ...]:
    """Everything that `fill` changes."""
    return (
        store.topics(),
        store.head(topic),
        len(store.events(topic, "agt_1", limit=10_000)),
        store.find(topic, entry(300).wire_id),
        list(store.rows(topic, "task")),
        list(store.rows(topic, "task", "open")),
        store.content(topic, body(b"small").sha256),
        store.content(topic, body(b"large" * 10_000).sha256),
        list(store.counters(topic)),
        list(store.checkpoints(topic, 9)),
        store.setting("log_id"),
        store.tile(topic, 0, 0),
    )


class UnitCases:
    def test_a_unit_that_raises_leaves_nothing(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        before = seen(store, topic)
        with pytest.raises(Broken):
            spoil(store, lambda unit: (fill(unit, topic), unit.create_topic()))
        assert seen(store, topic) == before == seen(other, topic)
        with store.write() as unit:
            fill(unit, topic)
        assert len(check_topic(store, topic)) == 300
        assert store.topics() == [topic]

    def test_a_unit_sees_what_it_has_added_and_nobody_else_does(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        before = seen(store, topic)
        with store.write() as unit:
            fill(unit, topic)
            assert unit.head(topic).sequence == 300
            assert len(unit.read(topic, 0, 1000)) == 300
            assert len(unit.read_back(topic, 1000, 1000)) == 300
            assert len(unit.events(topic, "agt_1")) == 300
            assert unit.find(topic, entry(299).wire_id) is not None
            assert unit.row(topic, "task", "task_0") is not None
            assert len(unit.rows(topic, "task", "open")) == 1
            assert unit.content(topic, body(b"large" * 10_000).sha256) is not None
            assert unit.counters(topic) == [("tasks", 5)]
            assert unit.checkpoints(topic) == [(300, note(300))]
            assert unit.setting("log_id") == "log-0"
            assert unit.tile(topic, 0, 0) is not None
            assert len(unit.tree(topic).inclusion_proof(3)) == 9
            check_topic(unit, topic)
            assert seen(store, topic) == before == seen(other, topic)
        assert seen(store, topic) == seen(other, topic) != before
        check_topic(other, topic)

    def test_when_the_block_has_ended_the_unit_is_there_for_a_store_opened_now(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        for number in range(1, 4):
            append(store, topic, 1)
            assert maker.open().head(topic) == store.head(topic)
            assert store.head(topic).sequence == number

    def test_everything_is_there_after_closing_and_opening(self, maker: Maker) -> None:
        with opened(maker) as store:
            topic = new_topic(store)
            with store.write() as unit:
                fill(unit, topic)
            before = seen(store, topic)
        store = maker.open()
        assert seen(store, topic) == before
        with store.write() as unit:
            fill(unit, topic)
        assert len(check_topic(store, topic)) == 600

    def test_one_unit_writes_several_topics_together(self, maker: Maker) -> None:
        store = maker.open()
        with store.write() as unit:
            topics = [unit.create_topic() for _ in range(5)]
            for topic in topics:
                unit.append(topic, entries(1, 3), 0)
        with pytest.raises(Broken):
            spoil(store, lambda unit: [unit.append(topic, entries(4, 3), 3) for topic in topics])
        for topic in topics:
            assert len(check_topic(store, topic)) == 3

    def test_a_unit_that_raised_leaves_no_trace_in_the_next(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 250)
        for _ in range(3):
            with pytest.raises(Broken):
                spoil(store, lambda unit: unit.append(topic, entries(251, 20, "agt_1"), 250))
            with pytest.raises(Broken):
                spoil(store, lambda unit: unit.create_topic())
        append(store, topic, 20)
        assert len(check_topic(store, topic)) == 270
        assert not store.events(topic, "agt_1")
        assert new_topic(store) == "1.0.1002"

    def test_an_empty_unit_is_fine(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write() as unit:
            assert unit.append(topic, [], 0) == []
        with store.write():
            pass
        assert store.head(topic).sequence == 0

    def test_a_unit_is_over_when_its_block_is(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write() as unit:
            pass
        for call in (
            lambda: unit.append(topic, entries(1, 1), 0),
            lambda: unit.head(topic),
            lambda: unit.read(topic),
            lambda: unit.put_setting("a", "b"),
            lambda: unit.create_topic(),
            lambda: unit.put_rows(topic, []),
        ):
            with pytest.raises(StoreMisused) as refused:
                call()
            assert refused.value.code == "unit_ended"

    def test_two_stores_take_turns_and_go_on_from_each_other(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        for _ in range(5):
            append(one, topic, 70, "agt_1")
            append(two, topic, 1, "agt_2")
            append(two, topic, 90)
        assert len(check_topic(one, topic)) == 805 == len(check_topic(two, topic))

    def test_changed_tells_of_other_stores_only_and_once(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        one.changed(), two.changed()
        append(one, topic, 1)
        assert not one.changed()
        assert two.changed()
        assert not two.changed()
        append(two, topic, 1)
        assert not two.changed()
        append(two, topic, 1)
        assert one.changed()
        assert not one.changed()

    def test_the_version_stays_until_anybody_commits(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        for writer in (one, two, one):
            before = one.version(), two.version()
            assert before == (one.version(), two.version())
            assert one.head(topic) == two.head(topic)
            assert before == (one.version(), two.version())
            append(writer, topic, 1)
            assert before[0] != one.version()
            assert before[1] != two.version()

    def test_a_store_that_may_not_wait_is_told_who_writes(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        with one.write():
            with pytest.raises(WriterBusy) as busy, two.write(wait=False):
                pass
            assert busy.value.code == "writer_busy"
        with two.write(wait=False) as unit:
            unit.append(topic, entries(1, 1), 0)

    def test_a_thread_cannot_wait_for_itself(self, maker: Maker) -> None:
        store = maker.open()
        with store.write():
            with pytest.raises(StoreMisused) as refused, store.write():
                pass
            assert refused.value.code == "unit_open"

    def test_a_held_lock_is_the_next_units(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(one.hold).result()
        with pytest.raises(WriterBusy), two.write(wait=False):
            pass
        with one.write(wait=False) as unit:
            unit.append(topic, entries(1, 1), 0)
        append(two, topic, 1)
        one.hold()
        one.hold()
        one.release()
        append(two, topic, 1)
        one.release()
        assert len(check_topic(one, topic)) == 3

    def test_hold_waits_for_another_store(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        asked = threading.Event()

        def wait_and_append() -> None:
            asked.set()
            two.hold()
            append(two, topic, 1)

        with ThreadPoolExecutor(1) as pool:
            with one.write() as unit:
                waiting = pool.submit(wait_and_append)
                assert asked.wait(60)
                unit.append(topic, entries(1, 1), 0)
                assert not waiting.done()
            waiting.result(60)
        assert len(check_topic(one, topic)) == 2

    def test_threads_of_one_store_write_one_after_the_other(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(append, store, topic, 3) for _ in range(40)]:
                done.result()
        assert len(check_topic(store, topic)) == 120

    def test_a_closed_store_says_so(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        store.close()
        store.close()
        for call in (
            lambda: store.head(topic),
            lambda: store.read(topic),
            lambda: store.changed(),
            lambda: store.version(),
            lambda: store.hold(),
            lambda: store.write().__enter__(),
            lambda: store.follow(topic),
        ):
            with pytest.raises(StoreMisused) as refused:
                call()
            assert refused.value.code == "store_closed"

    def test_a_checkpoint_names_a_size_that_the_topic_has_reached(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 3)
        with store.write() as unit:
            for size, bytes_ in ((4, note(4)), (2, note(3)), (2, b"no note"), (-1, b"a\n-1\nb")):
                with pytest.raises(AppendRefused) as refused:
                    unit.put_checkpoint(topic, size, bytes_)
                assert refused.value.code == "checkpoint_refused"
            unit.put_checkpoint(topic, 2, note(2))
            unit.put_checkpoint(topic, 3, note(3))
        assert store.checkpoints(topic) == [(3, note(3))]
        assert store.checkpoints(topic, 5) == [(3, note(3)), (2, note(2))]
