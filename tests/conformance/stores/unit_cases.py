"""What a unit of work promises: all of it or nothing, of one topic, one at a time, durable when it ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from redkey.errors import AppendRefused, StoreMisused, WriterBusy
from redkey.ledger.content import body
from redkey.ledger.ports import Reader, Row, SequencedStore, Unit
from redkey.ledger.prefetch import Prefetch
from redkey.ledger.record import NANOSECONDS
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import (
    NOON,
    Broken,
    Maker,
    ManualClock,
    append,
    entries,
    entry,
    new_topic,
    opened,
    spoil,
    wait_until,
)


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
    unit.put_fact(topic, "log_id", f"log-{head}")
    unit.put_due(topic, 7)


def seen(store: Reader, topic: str) -> tuple[object, ...]:
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


def heads_are(stores: Sequence[SequencedStore], topic: str, head: int) -> bool:
    return all(store.known_head(topic) == head for store in stores)


def only_inline(store: SequencedStore) -> None:
    if not store.inline:
        pytest.skip("units of this store wait for their own locks and are committed by themselves")


def spoil_together(store: SequencedStore, topics: Sequence[str], *, ignored: bool) -> None:
    """Units that share a commit, of which the last fails; a failure that is ignored fails the others all the same."""
    with store.together():
        for topic in topics[:-1]:
            append(store, topic, 3)
        with suppress(Broken if ignored else ()):  # type: ignore[arg-type]
            spoil(store, topics[-1], lambda unit: unit.append(topics[-1], entries(4, 3), 3))


class UnitCases:
    def test_a_unit_that_raises_leaves_nothing(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        before = seen(store, topic)
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: fill(unit, topic))
        assert seen(store, topic) == before == seen(other, topic)
        with store.write(topic) as unit:
            fill(unit, topic)
        assert len(check_topic(store, topic)) == 300
        assert store.topics() == [topic]

    def test_a_unit_sees_what_it_has_added_and_nobody_else_does(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        before = seen(store, topic)
        with store.write(topic) as unit:
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
            with store.write(topic) as unit:
                fill(unit, topic)
            before = seen(store, topic)
        store = maker.open()
        assert seen(store, topic) == before
        with store.write(topic) as unit:
            fill(unit, topic)
        assert len(check_topic(store, topic)) == 600

    def test_a_unit_reads_every_topic_and_writes_its_own(self, maker: Maker) -> None:
        store = maker.open()
        topic, other = new_topic(store), new_topic(store)
        append(store, other, 2)
        with store.write(topic) as unit:
            unit.append(topic, entries(1, 1), 0)
            assert unit.head(other).sequence == 2
            for call in (
                lambda: unit.append(other, entries(3, 1), 2),
                lambda: unit.put_rows(other, [Row("task", "task_1", b"{}")]),
                lambda: unit.delete_rows(other, "task", ["task_1"]),
                lambda: unit.put_content(other, [body(b"small")]),
                lambda: unit.erase_content(other, body(b"small").sha256),
                lambda: unit.count(other, [("tasks", 1)]),
                lambda: unit.put_checkpoint(other, 2, note(2)),
                lambda: unit.put_fact(other, "log_id", "other"),
                lambda: unit.put_due(other, 7),
                lambda: unit.next_timestamp(other),
            ):
                with pytest.raises(StoreMisused) as refused:
                    call()
                assert refused.value.code == "unit_of_another_topic"
        assert len(check_topic(store, topic)) == 1
        assert len(check_topic(store, other)) == 2
        assert store.setting("log_id") is None

    def test_units_of_several_topics_are_committed_together(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        only_inline(store)
        with store.together():
            topics = [new_topic(store) for _ in range(5)]
            for topic in topics:
                append(store, topic, 3)
            assert other.topics() == []
        for ignored in (False, True):
            with pytest.raises(Broken):
                spoil_together(store, topics, ignored=ignored)
        for topic in topics:
            assert len(check_topic(other, topic)) == 3

    def test_settings_are_written_in_a_unit_on_the_whole_store(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        with store.write_store() as unit:
            unit.put_setting("log_id", "one")
            assert unit.setting("log_id") == "one"
            assert other.setting("log_id") is None
        with suppress(Broken), store.write_store() as unit:
            unit.put_setting("log_id", "two")
            raise Broken
        assert store.setting("log_id") == "one" == other.setting("log_id")
        with store.write(topic) as topic_unit, pytest.raises(StoreMisused) as refused:
            topic_unit.put_setting("log_id", "three")  # type: ignore[attr-defined]
        assert refused.value.code == "unit_of_a_topic"

    def test_of_two_that_create_a_topic_for_one_fact_both_get_the_same(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = one.create_topic(fact="workspace/wk_1")
        assert two.create_topic(fact="workspace/wk_1") == topic
        assert one.create_topic(fact="workspace/wk_2") != topic
        assert two.setting("workspace/wk_1") == topic
        assert len(one.topics()) == 2

    def test_a_snapshot_does_not_see_what_is_committed_meanwhile(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            fill(unit, topic)
        before = seen(store, topic)
        with store.snapshot() as snapshot:
            assert seen(snapshot, topic) == before
            new_topic(other)
            for writer in (other, store):
                with writer.write(topic) as unit:
                    fill(unit, topic)
            assert seen(snapshot, topic) == before
            check_topic(snapshot, topic)
        assert store.head(topic).sequence == 900
        with store.snapshot() as snapshot:
            assert seen(snapshot, topic) == seen(other, topic)

    def test_what_is_due_is_found_without_a_lock(self, maker: Maker) -> None:
        clock = ManualClock()
        store, other = maker.open(clock), maker.open(clock)
        one, two, three = (new_topic(store) for _ in range(3))
        for topic, seconds in ((one, 30), (two, 20), (three, 10)):
            with store.write(topic) as unit:
                unit.append(topic, entries(1, 1), 0)
                unit.put_due(topic, NOON + seconds * NANOSECONDS)
        with store.write(one):
            assert other.due(NOON + 9 * NANOSECONDS, 9) == []
            assert other.due(NOON + 20 * NANOSECONDS, 9) == [three, two]
            assert store.due(NOON + 99 * NANOSECONDS, 2) == [three, two]
        with pytest.raises(Broken):
            spoil(store, one, lambda unit: unit.put_due(one, 1))
        # A later time leaves an earlier one that is still to come; an earlier one replaces it.
        for at, found in ((40, [two]), (0, [two]), (15, [two]), (25, [two])):
            with other.write(two) as unit:
                unit.put_due(two, at and NOON + at * NANOSECONDS)
            assert two in store.due(NOON + 20 * NANOSECONDS, 9), found
        assert store.due(NOON + 14 * NANOSECONDS, 9) == [three]
        # A past time is replaced by the new one.
        clock.pass_time(60 * NANOSECONDS)
        with store.write(two) as unit:
            unit.put_due(two, NOON + 90 * NANOSECONDS)
        with other.write(three) as unit:
            unit.put_due(three, 0)
        assert store.due(NOON + 60 * NANOSECONDS, 9) == [one]
        assert store.due(NOON + 90 * NANOSECONDS, 9) == [one, two]

    def test_a_unit_that_raised_leaves_no_trace_in_the_next(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 250)
        for _ in range(3):
            with pytest.raises(Broken):
                spoil(store, topic, lambda unit: unit.append(topic, entries(251, 20, "agt_1"), 250))
            with pytest.raises(AppendRefused):
                store.create_topic(topic)
        append(store, topic, 20)
        assert len(check_topic(store, topic)) == 270
        assert not store.events(topic, "agt_1")
        assert new_topic(store) == "1.0.1002"

    def test_an_empty_unit_is_fine(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            assert unit.append(topic, [], 0) == []
        with store.write(topic):
            pass
        assert store.head(topic).sequence == 0

    def test_a_unit_is_over_when_its_block_is(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            pass
        for call in (
            lambda: unit.append(topic, entries(1, 1), 0),
            lambda: unit.head(topic),
            lambda: unit.read(topic),
            lambda: unit.put_fact(topic, "a", "b"),
            lambda: unit.put_due(topic, 1),
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

    def test_the_known_head_follows_every_commit(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        assert one.known_head(topic) == two.known_head(topic) == 0
        for number, writer in enumerate((one, two, one), 1):
            append(writer, topic, 1)
            assert writer.known_head(topic) == number
            wait_until(partial(heads_are, (one, two), topic, number))

    def test_subscribers_learn_of_what_others_commit(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        heard: list[tuple[str, int]] = []
        end = one.subscribe(lambda topic, head: heard.append((topic, head)))
        one.known_head(topic)
        append(two, topic, 2)
        wait_until(lambda: one.look() or (topic, 2) in heard)
        append(two, topic, 1)
        wait_until(lambda: one.look() or (topic, 3) in heard)
        end()
        append(two, topic, 1)
        wait_until(lambda: one.known_head(topic) == 4)
        one.look()
        assert heard[-1] == (topic, 3)

    def test_a_commit_of_another_is_not_lost_behind_an_own_one(self, maker: Maker) -> None:
        """Its own commit at once after it hides nothing, to the same topic or to another."""
        one, two = maker.open(), maker.open()
        topic, other = new_topic(one), new_topic(one)
        heard: dict[str, int] = {}
        one.subscribe(heard.__setitem__)
        for number in (topic, other):
            one.known_head(number)
        append(two, topic, 1)
        append(one, other, 1)
        wait_until(lambda: one.look() or heard.get(topic, 0) >= 1)
        append(two, topic, 1)
        append(one, topic, 1)
        wait_until(lambda: one.look() or heard[topic] >= 2)
        append(two, other, 1)
        append(one, topic, 1)
        append(one, other, 1)
        wait_until(lambda: one.look() or heard.get(other, 0) >= 2)

    def test_a_store_that_may_not_wait_is_told_who_writes(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        topic = new_topic(one)
        with one.write(topic):
            with pytest.raises(WriterBusy) as busy, two.write(topic, wait=False):
                pass
            assert busy.value.code == "writer_busy"
        with two.write(topic, wait=False) as unit:
            unit.append(topic, entries(1, 1), 0)

    def test_units_of_different_topics_run_side_by_side(self, maker: Maker) -> None:
        store = maker.open()
        if store.inline:
            pytest.skip("units of this store run one after the other")
        one, two = new_topic(store), new_topic(store)
        with ThreadPoolExecutor(1) as pool, store.write(one) as unit:
            unit.append(one, entries(1, 1), 0)
            pool.submit(append, store, two, 3).result(60)
            assert store.head(one).sequence == 0
        assert len(check_topic(store, one)) == 1
        assert len(check_topic(store, two)) == 3

    def test_a_thread_cannot_wait_for_itself(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic):
            with pytest.raises(StoreMisused) as refused, store.write(topic):
                pass
            assert refused.value.code == "unit_open"

    def test_a_held_lock_is_the_next_units(self, maker: Maker) -> None:
        one, two = maker.open(), maker.open()
        only_inline(one)
        topic = new_topic(one)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(one.hold).result()
        with pytest.raises(WriterBusy), two.write(topic, wait=False):
            pass
        with one.write(topic, wait=False) as unit:
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
        only_inline(one)
        topic = new_topic(one)
        asked = threading.Event()

        def wait_and_append() -> None:
            asked.set()
            two.hold()
            append(two, topic, 1)

        with ThreadPoolExecutor(1) as pool:
            with one.write(topic) as unit:
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
            lambda: store.look(),
            lambda: store.known_head(topic),
            lambda: store.hold(),
            lambda: store.due(1, 1),
            lambda: store.create_topic(),
            lambda: store.write(topic).__enter__(),
            lambda: store.write_store().__enter__(),
            lambda: store.snapshot().__enter__(),
            lambda: store.follow(topic),
        ):
            with pytest.raises(StoreMisused) as refused:
                call()
            assert refused.value.code == "store_closed"

    def test_a_checkpoint_names_a_size_that_the_topic_has_reached(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 3)
        with store.write(topic) as unit:
            for size, bytes_ in ((4, note(4)), (2, note(3)), (2, b"no note"), (-1, b"a\n-1\nb")):
                with pytest.raises(AppendRefused) as refused:
                    unit.put_checkpoint(topic, size, bytes_)
                assert refused.value.code == "checkpoint_refused"
            unit.put_checkpoint(topic, 2, note(2))
            unit.put_checkpoint(topic, 3, note(3))
        assert store.checkpoints(topic) == [(3, note(3))]
        assert store.checkpoints(topic, 5) == [(3, note(3)), (2, note(2))]

    def test_reads_of_what_was_read_ahead_show_what_the_unit_changes(self, maker: Maker) -> None:
        store = maker.open()
        topic, kept, erased, new = new_topic(store), body(b"kept"), body(b"erased"), body(b"new")
        # More than a block of the event index, with the subject in it and after it.
        append(store, topic, 255, "agt_1")
        append(store, topic, 5, "agt_1", "agt_2")
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", f"t{n}", b"%d" % n, "open", n) for n in range(3)])
            unit.put_content(topic, [kept, erased])
            unit.count(topic, [("tasks", 3)])
        wanted = Prefetch(
            rows=[("task", "t0"), ("task", "t1"), ("task", "t9")],
            contents=[kept.sha256, erased.sha256, new.sha256],
            counters=["tasks"],
            lists=[("task", "open", 2)],
            subjects=["agt_1", "agt_2", "agt_3"],
            newest=3,
        )
        with store.write(topic) as unit:
            unit.prefetch(topic, wanted)

            def newest(subject: str, before: int = 0) -> list[int]:
                return [one.sequence for one in unit.events(topic, subject, before, 3, newest_first=True)]

            assert [unit.row(topic, "task", key) for key in ("t1", "t9")] == [Row("task", "t1", b"1", "open", 1), None]
            assert [row.key for row in unit.rows(topic, "task", "open", limit=2)] == ["t0", "t1"]
            assert unit.content(topic, kept.sha256) == kept
            assert unit.content(topic, new.sha256) is None
            assert [*unit.counters(topic, "tasks")] == [("tasks", 3)]
            assert (newest("agt_1"), newest("agt_1", 258)) == ([260, 259, 258], [257, 256, 255])
            assert (newest("agt_2", 258), newest("agt_3")) == ([257, 256], [])
            unit.put_rows(topic, [Row("task", "t1", b"!", "done", 1), Row("task", "t9", b"9", "open", 0)])
            unit.delete_rows(topic, "task", ["t0"])
            assert unit.row(topic, "task", "t0") is None
            assert unit.row(topic, "task", "t1") == Row("task", "t1", b"!", "done", 1)
            assert unit.row(topic, "task", "t9") == Row("task", "t9", b"9", "open", 0)
            assert [row.key for row in unit.rows(topic, "task", "open", limit=2)] == ["t9", "t2"]
            unit.put_content(topic, [new])
            unit.erase_content(topic, erased.sha256)
            assert unit.content(topic, new.sha256) == new
            assert unit.content(topic, erased.sha256) is None
            unit.count(topic, [("tasks", 1)])
            assert [*unit.counters(topic, "tasks")] == [("tasks", 4)]
            unit.append(topic, entries(261, 1, "agt_1"), 260)
            assert newest("agt_1") == [261, 260, 259]
