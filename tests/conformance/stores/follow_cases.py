"""Following: every record once, in order, as it is committed, by this store or another; ends with the store."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from redkey.ledger.ports import Row
from redkey.ledger.record import Record
from tests.conformance.stores.harness import Broken, Maker, append, entries, new_topic, spoil


class FollowCases:
    def test_a_follower_sees_what_is_there_and_what_comes(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 3)
        batches = store.follow(topic, 1)
        assert [record.sequence for record in next(batches)] == [2, 3]
        append(store, topic, 2)
        assert [record.sequence for record in next(batches)] == [4, 5]
        batches.close()  # type: ignore[attr-defined]

    def test_a_sleeping_follower_is_woken_by_this_store_and_by_another(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        with ThreadPoolExecutor(1) as pool:
            batches = store.follow(topic)
            for writer in (store, other, store, other):
                waiting = pool.submit(next, batches)
                (expected,) = append(writer, topic, 1)
                assert waiting.result(30) == [expected]
            batches.close()  # type: ignore[attr-defined]

    def test_followers_see_everything_once_while_others_write(self, maker: Maker) -> None:
        store, other = maker.open(), maker.open()
        topic = new_topic(store)
        total = 200

        def see(after: int) -> list[Record]:
            found: list[Record] = []
            for batch in store.follow(topic, after):
                found += batch
                if found[-1].sequence == total:
                    return found
            return found

        with ThreadPoolExecutor(4) as pool:
            followers = [pool.submit(see, after) for after in (0, 0, 50)]
            for number in range(total // 2):
                append(store if number % 3 else other, topic, 2)
            for follower, first in zip(followers, (1, 1, 51), strict=True):
                assert [record.sequence for record in follower.result(60)] == list(range(first, total + 1))

    def test_a_follower_never_sees_a_unit_that_fails(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        append(store, topic, 1)
        batches = store.follow(topic)
        assert len(next(batches)) == 1
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: unit.append(topic, entries(2, 1, "never"), 1))
        (expected,) = append(store, topic, 1)
        assert next(batches) == [expected]
        batches.close()  # type: ignore[attr-defined]

    def test_followers_end_when_the_store_closes(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        before = threading.active_count()
        started = threading.Barrier(4)

        def see() -> list[object]:
            batches = store.follow(topic)
            started.wait(30)
            return list(batches)

        with ThreadPoolExecutor(3) as pool:
            followers = [pool.submit(see) for _ in range(3)]
            started.wait(30)
            store.close()
            assert [follower.result(30) for follower in followers] == [[], [], []]
        assert threading.active_count() <= before

    def test_a_topic_may_be_followed_before_it_begins(self, maker: Maker) -> None:
        store = maker.open()
        with ThreadPoolExecutor(1) as pool:
            batches = store.follow("1.0.1001")
            waiting = pool.submit(next, batches)
            topic = new_topic(store)
            (expected,) = append(store, topic, 1)
            assert waiting.result(30) == [expected]
            batches.close()  # type: ignore[attr-defined]

    def test_readers_in_threads_never_see_half_a_unit(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        stop = threading.Event()
        looked = [threading.Event(), threading.Event()]

        def look(seen: threading.Event) -> None:
            while not stop.is_set():
                # The row first and the head second: a unit committed in between can only make the topic longer.
                row, head = store.row(topic, "count", "records"), store.head(topic).sequence
                assert head % 5 == 0
                assert head >= int(row.body if row is not None else 0)
                assert len(store.read(topic, 0, 10_000)) % 5 == 0
                with store.snapshot() as snapshot:
                    row = snapshot.row(topic, "count", "records")
                    assert snapshot.head(topic).sequence == int(row.body if row is not None else 0)
                seen.set()

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(look, seen) for seen in looked]
            number, deadline = 0, time.monotonic() + 60

            def go_on() -> bool:
                """Until both have looked in the middle of it, however late their threads begin."""
                over = any(reader.done() for reader in readers)
                return number < 60 or not (over or all(seen.is_set() for seen in looked))

            try:
                while go_on():
                    assert time.monotonic() < deadline, "a reader does not come to look"
                    with store.write(topic) as unit:
                        unit.append(topic, entries(1, 5), number * 5)
                        unit.put_rows(topic, [Row("count", "records", b"%d" % (number * 5 + 5))])
                    number += 1
            finally:
                stop.set()
            for reader in readers:
                reader.result(30)
