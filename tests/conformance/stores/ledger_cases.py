"""What HCS promises of a topic, asked of a store: sequences, timestamps, sizes, hashes, finding records."""

from __future__ import annotations

import pytest

from redkey.errors import AppendRefused
from redkey.ledger.ports import Entry
from redkey.ledger.record import EMPTY_HEAD, NANOSECONDS
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import NOON, Maker, ManualClock, append, entries, entry, new_topic, opened

HOUR = 3600 * NANOSECONDS


class LedgerCases:
    def test_local_topics_count_upward_from_1001(self, maker: Maker) -> None:
        store = maker.open()
        assert [new_topic(store), new_topic(store)] == ["1.0.1001", "1.0.1002"]
        assert store.create_topic("0.0.4711") == "0.0.4711"
        assert store.create_topic() == "1.0.1003"
        assert store.topics() == ["1.0.1001", "1.0.1002", "0.0.4711", "1.0.1003"]

    def test_a_topic_is_begun_once_and_has_a_proper_id(self, maker: Maker) -> None:
        store = maker.open()
        new_topic(store)
        with pytest.raises(AppendRefused) as refused:
            store.create_topic("1.0.1001")
        assert refused.value.code == "topic_exists"
        for bad in ("1.0", "1.0.x", "", "1.0.-5", "1.0.9223372036854775808"):
            with pytest.raises(AppendRefused) as refused:
                store.create_topic(bad)
            assert refused.value.code == "topic_invalid"
        assert store.topics() == ["1.0.1001"]

    def test_a_topic_that_is_not_there_reads_as_empty_and_takes_nothing(self, maker: Maker) -> None:
        store = maker.open()
        assert store.head("1.0.9999") == EMPTY_HEAD
        assert not store.read("1.0.9999")
        assert not store.read_back("1.0.9999", 10)
        assert not store.events("1.0.9999", "task_1")
        assert not store.rows("1.0.9999", "task")
        assert not store.counters("1.0.9999")
        assert not store.checkpoints("1.0.9999")
        assert store.find("1.0.9999", "wire_1") is None
        assert store.content("1.0.9999", "0" * 64) is None
        assert store.tile("1.0.9999", 0, 0) is None
        assert store.tree("1.0.9999").size == 0
        with store.write("1.0.9999") as unit:
            for call in (
                lambda: unit.append("1.0.9999", entries(1, 1), 0),
                lambda: unit.next_timestamp("1.0.9999"),
                lambda: unit.put_rows("1.0.9999", []),
                lambda: unit.count("1.0.9999", []),
                lambda: unit.put_content("1.0.9999", []),
            ):
                with pytest.raises(AppendRefused) as refused:
                    call()
                assert refused.value.code == "topic_unknown"

    def test_records_are_numbered_without_gap_and_hashed_as_hedera_does(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        for count in (1, 2, 61, 64, 127, 1, 300):
            append(store, topic, count)
        assert len(check_topic(store, topic)) == 556

    def test_the_payer_is_the_local_one_unless_told(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.append(topic, entries(1, 1), 0)
            unit.append(topic, entries(2, 1), 1, payer="0.0.98")
            with pytest.raises(AppendRefused) as refused:
                unit.append(topic, entries(3, 1), 2, payer="me")
            assert refused.value.code == "payer_invalid"
        assert [record.payer for record in check_topic(store, topic)] == ["1.0.2", "0.0.98"]

    @pytest.mark.parametrize("size", [0, 1025, 4096])
    def test_a_message_of_a_wrong_size_takes_no_number_and_leaves_the_hash(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 3)
        with store.write(topic) as unit:
            before = unit.head(topic)
            with pytest.raises(AppendRefused) as refused:
                unit.append(topic, [entry(4), Entry(b"x" * size, "wire_bad"), entry(5)], 3)
            assert refused.value.code == "message_size"
            assert unit.head(topic) == before
            assert unit.append(topic, entries(4, 1), 3)[0].sequence == 4
        assert len(check_topic(store, topic)) == 4
        assert store.find(topic, "wire_bad") is None

    def test_messages_of_1_and_of_1024_bytes_are_taken(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.append(topic, [Entry(b"1", "wire_small"), entry(2, size=1024)], 0)
        assert [len(record.wire) for record in check_topic(store, topic)] == [1, 1024]

    def test_the_expected_sequence_is_an_assertion(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 2)
        with store.write(topic) as unit:
            for expected in (0, 1, 3):
                with pytest.raises(AppendRefused) as refused:
                    unit.append(topic, entries(3, 1), expected)
                assert refused.value.code == "sequence_moved"
        assert len(check_topic(store, topic)) == 2

    def test_the_first_record_has_the_time_that_decisions_were_made_at(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            now = unit.next_timestamp(topic)
            assert unit.next_timestamp(topic) == now
            records = unit.append(topic, entries(1, 3), 0)
            assert [record.timestamp for record in records] == [now, now + 1, now + 2]
            assert unit.next_timestamp(topic) == now + 3
            assert unit.append(topic, entries(4, 1), 3)[0].timestamp == now + 3

    def test_each_unit_draws_its_own_time(self, maker: Maker) -> None:
        clock = ManualClock()
        store = maker.open(clock)
        topic = new_topic(store)
        first = append(store, topic, 1)[0].timestamp
        assert NOON <= first < NOON + NANOSECONDS
        clock.pass_time(10 * NANOSECONDS)
        assert abs(append(store, topic, 1)[0].timestamp - first - 10 * NANOSECONDS) < 1000

    def test_timestamps_rise_over_a_clock_that_stands_still_steps_back_and_forward(self, maker: Maker) -> None:
        clock = ManualClock()
        store = maker.open(clock)
        topic = new_topic(store)
        for step in (0, 0, -HOUR, -24 * HOUR, 0, HOUR, 48 * HOUR, -HOUR):
            clock.step(step)
            append(store, topic, 3)
            clock.pass_time(1)
        records = check_topic(store, topic)
        assert records[-1].timestamp - records[0].timestamp < NANOSECONDS, "a step of the clock is no passing of time"

    def test_time_goes_on_after_the_clock_has_stepped_back_while_the_store_was_closed(self, maker: Maker) -> None:
        clock = ManualClock()
        with opened(maker, clock) as store:
            topic = new_topic(store)
            last = append(store, topic, 2)[-1].timestamp
        later = ManualClock(NOON - 24 * HOUR)
        store = maker.open(later)
        again = append(store, topic, 1)[0].timestamp
        assert last < again < last + NANOSECONDS
        later.pass_time(100 * NANOSECONDS)
        moved = append(store, topic, 1)[0].timestamp - again
        assert 90 * NANOSECONDS < moved < 110 * NANOSECONDS, "the ledger clock must not freeze until wall time is back"
        check_topic(store, topic)

    def test_records_of_another_ledger_are_taken_with_their_times(self, maker: Maker) -> None:
        store = maker.open()
        topic = store.create_topic("0.0.4711")
        with store.write(topic) as unit:
            records = unit.append(topic, entries(1, 3), 0, payer="0.0.98", timestamps=[5, 6, 1000])
            assert [record.timestamp for record in records] == [5, 6, 1000]
            for wrong in ([1000], [999], [1001, 1001], [1002, 1001], [1001, 2**63]):
                with pytest.raises(AppendRefused) as refused:
                    unit.append(topic, entries(4, len(wrong)), 3, timestamps=wrong)
                assert refused.value.code == "timestamp_order"
            with pytest.raises(AppendRefused):
                unit.append(topic, entries(4, 2), 3, timestamps=[2000])
        assert len(check_topic(store, topic)) == 3

    def test_records_are_read_forward_and_backward_in_pages(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 10)
        assert [record.sequence for record in store.read(topic, 0, 4)] == [1, 2, 3, 4]
        assert [record.sequence for record in store.read(topic, 8, 4)] == [9, 10]
        assert [record.sequence for record in store.read(topic, -5, 1)] == [1]
        assert not store.read(topic, 10)
        assert not store.read(topic, 2**62)
        assert not store.read(topic, 0, 0)
        assert [record.sequence for record in store.read_back(topic, 11, 3)] == [10, 9, 8]
        assert [record.sequence for record in store.read_back(topic, 3)] == [2, 1]
        assert [record.sequence for record in store.read_back(topic, 2**62, 1)] == [10]
        assert not store.read_back(topic, 1)
        assert [record.sequence for record in store.read_back(topic, 9, after=5)] == [8, 7, 6]
        assert not store.read_back(topic, 9, after=8)

    def test_records_are_found_by_bytes_that_they_contain(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 30)
        wires = {record.sequence: record.wire for record in store.read(topic)}
        for part in (wires[7], wires[7][1:-1], b"1", b"\x00", b"%", b"_"):
            there = [sequence for sequence in range(30, 0, -1) if part in wires[sequence]]
            assert [record.sequence for record in store.read_back(topic, 31, containing=part)] == there
            assert [record.sequence for record in store.read_back(topic, 31, 2, containing=part)] == there[:2]
            some = [sequence for sequence in there if 5 < sequence < 20]
            assert [record.sequence for record in store.read_back(topic, 20, after=5, containing=part)] == some

    def test_a_record_is_found_by_its_wire_id_in_its_topic_only(self, maker: Maker) -> None:
        store = maker.open()
        topic, other = new_topic(store), new_topic(store)
        append(store, topic, 600)
        append(store, other, 3)
        for number in (1, 255, 256, 257, 512, 513, 600):
            found = store.find(topic, entry(number).wire_id)
            assert found is not None
            assert found.sequence == number
        assert store.find(topic, "wire_unknown") is None
        assert store.find(other, entry(4).wire_id) is None

    def test_wire_ids_are_found_by_their_beginning_in_their_topic_only(self, maker: Maker) -> None:
        store = maker.open()
        topic, other = new_topic(store), new_topic(store)
        append(store, topic, 600)
        append(store, other, 3)
        ids = [entry(number).wire_id for number in range(1, 601)]
        # Of the index, of the block that is not complete, and of both.
        for beginning in (ids[6], ids[6][:15], ids[598], ids[598][:15], ids[0][:13], "wire_"):
            there = [wire_id for wire_id in sorted(ids) if wire_id.startswith(beginning)]
            assert list(store.wire_ids(topic, beginning, 1000)) == there
            assert list(store.wire_ids(topic, beginning, 3)) == there[:3]
        assert list(store.wire_ids(other, "wire_")) == ids[:3]
        assert not store.wire_ids(other, ids[3])
        assert not store.wire_ids("1.0.9999", "wire_")
        for beginning in ("wire_%", "wire__", "wire_*", "", "WIRE_"):
            assert list(store.wire_ids(topic, beginning, 2)) == ([] if beginning else sorted(ids)[:2])
        with store.write(topic) as unit:
            unit.append(topic, [entry(700), entry(1)], 600)
            assert list(unit.wire_ids(topic, entry(700).wire_id[:20])) == [entry(700).wire_id]
        assert list(store.wire_ids(topic, entry(1).wire_id)) == [ids[0]]

    def test_a_second_copy_of_a_wire_is_kept_and_the_first_is_found(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.append(topic, [entry(1), entry(1)], 0)
        append(store, topic, 300)
        with store.write(topic) as unit:
            unit.append(topic, [entry(1)], 302)
            found = unit.find(topic, entry(1).wire_id)
            assert found is not None
            assert found.sequence == 1
        found = store.find(topic, entry(1).wire_id)
        assert found is not None
        assert found.sequence == 1

    def test_events_are_the_records_that_speak_of_a_subject(self, maker: Maker) -> None:
        store = maker.open()
        topic, other = new_topic(store), new_topic(store)
        for number in range(1, 301):
            subjects = ["agt_1"] if number % 2 else ["agt_1", f"task_{number}", "agt_2", "agt_2"]
            with store.write(topic) as unit:
                unit.append(topic, [entry(number, *subjects)], number - 1)
        append(store, other, 5, "agt_1")
        assert [record.sequence for record in store.events(topic, "agt_1")] == list(range(1, 301))
        assert [record.sequence for record in store.events(topic, "agt_2")] == list(range(2, 301, 2))
        assert [record.sequence for record in store.events(topic, "task_256")] == [256]
        assert [record.sequence for record in store.events(topic, "task_300")] == [300]
        assert not store.events(topic, "task_3")
        assert [record.sequence for record in store.events(topic, "agt_2", after=250, limit=4)] == [252, 254, 256, 258]
        newest = store.events(topic, "agt_2", limit=3, newest_first=True)
        assert [record.sequence for record in newest] == [300, 298, 296]
        older = store.events(topic, "agt_2", after=258, limit=3, newest_first=True)
        assert [record.sequence for record in older] == [256, 254, 252]
        assert len(store.events(other, "agt_1")) == 5

    @pytest.mark.parametrize("odd", ["a\x00b", "a\nb", "\ud800"])
    def test_ids_that_are_no_printable_text_are_refused(self, maker: Maker, odd: str) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            for bad in (Entry(b"1", odd), Entry(b"1", "wire_1", ("task_1", odd))):
                with pytest.raises(AppendRefused) as refused:
                    unit.append(topic, [entry(1), bad], 0)
                assert refused.value.code == "subject_invalid"
        assert store.head(topic) == EMPTY_HEAD

    def test_a_wire_id_is_not_a_subject_and_odd_subjects_are_told_apart(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        odd = ['a"b', "b", 'c\\"b', "ü", "üü", "[1]", "%"]
        with store.write(topic) as unit:
            unit.append(topic, [entry(number, subject) for number, subject in enumerate(odd)], 0)
        for number, subject in enumerate(odd):
            assert [record.sequence for record in store.events(topic, subject)] == [number + 1]
        assert not store.events(topic, entry(1).wire_id)
        append(store, topic, 300)
        for number, subject in enumerate(odd):
            assert [record.sequence for record in store.events(topic, subject)] == [number + 1]
