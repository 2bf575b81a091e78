"""Rows, counters and settings: the read model, written in the unit that made it true."""

from __future__ import annotations

import random
from collections.abc import Sequence

from redkey.ledger.ports import Row
from tests.conformance.stores.harness import Maker, new_topic


def keys(rows: Sequence[Row]) -> list[str]:
    return [row.key for row in rows]


class RowCases:
    def test_rows_come_by_key_and_by_place_in_a_list(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", f"t{n}", b"%d" % n, "open" if n % 2 else "", 100 - n) for n in range(6)])
            unit.put_rows(topic, [Row("agent", "t1", b"agent", "open", 1)])
        assert store.row(topic, "task", "t3") == Row("task", "t3", b"3", "open", 97)
        assert store.row(topic, "task", "t9") is None
        assert keys(store.rows(topic, "task")) == ["t0", "t1", "t2", "t3", "t4", "t5"]
        assert keys(store.rows(topic, "task", after=(0, "t3"))) == ["t4", "t5"]
        assert keys(store.rows(topic, "task", limit=2)) == ["t0", "t1"]
        assert keys(store.rows(topic, "task", "open")) == ["t5", "t3", "t1"]
        assert keys(store.rows(topic, "task", "open", after=(95, "t5"))) == ["t3", "t1"]
        assert not store.rows(topic, "task", "")
        assert not store.rows(topic, "task", "closed")
        assert keys(store.rows(topic, "agent", "open")) == ["t1"]

    def test_the_rows_of_a_list_are_counted(self, maker: Maker) -> None:
        store = maker.open()
        topic, other = new_topic(store), new_topic(store)
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", f"t{n}", b"{}", "open" if n else "done", n) for n in range(4)])
            unit.put_rows(topic, [Row("agent", "t1", b"{}", "open", 1), Row("task", "none", b"{}")])
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", "t1", b"{}", "done", 1)])
            unit.delete_rows(topic, "task", ["t2"])
            assert unit.count_rows(topic, "task", "open") == 1
        assert [store.count_rows(topic, "task", name) for name in ("open", "done", "", "never")] == [1, 2, 0, 0]
        assert store.count_rows(other, "task", "open") == 0

    def test_places_that_are_shared_are_paged_by_key(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", f"t{n}", b"{}", "open", n // 3) for n in range(9)])
        found, after = [], (0, "")
        while page := store.rows(topic, "task", "open", after, 2):
            found += keys(page)
            after = (page[-1].position, page[-1].key)
        assert found == [f"t{n}" for n in range(9)]

    def test_a_row_moves_between_lists_and_goes(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", "t1", b"1", "open", 1), Row("task", "t2", b"2", "open", 2)])
        with store.write(topic) as unit:
            unit.put_rows(topic, [Row("task", "t1", b"!", "done", 5)])
            assert keys(unit.rows(topic, "task", "open")) == ["t2"]
            unit.delete_rows(topic, "task", ["t2", "t99"])
            assert not unit.rows(topic, "task", "open")
            assert keys(unit.rows(topic, "task")) == ["t1"]
            unit.put_rows(topic, [Row("task", "t2", b"back")])
        assert not store.rows(topic, "task", "open")
        assert keys(store.rows(topic, "task", "done")) == ["t1"]
        assert store.row(topic, "task", "t2") == Row("task", "t2", b"back")
        with store.write(topic) as unit:
            unit.delete_rows(topic, "task", ["t1", "t2"])
        assert not store.rows(topic, "task")

    def test_topics_do_not_share_rows_counters_or_lists(self, maker: Maker) -> None:
        store = maker.open()
        one, two = new_topic(store), new_topic(store)
        with store.write(one) as unit:
            unit.put_rows(one, [Row("task", "t1", b"one", "open", 1)])
            unit.count(one, [("a", 1)])
        with store.write(two) as unit:
            unit.put_rows(two, [Row("task", "t1", b"two", "open", 1)])
            unit.delete_rows(two, "task", ["t2"])
        assert store.row(one, "task", "t1") != store.row(two, "task", "t1")
        assert len(store.rows(one, "task", "open")) == 1
        assert not store.counters(two)

    def test_rows_agree_with_a_plain_dictionary(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        draw, model = random.Random(7), {}
        for _ in range(60):
            with store.write(topic) as unit:
                for _ in range(draw.randrange(1, 20)):
                    key = f"k{draw.randrange(40)}"
                    if draw.random() < 0.3:
                        unit.delete_rows(topic, "x", [key])
                        model.pop(key, None)
                    else:
                        row = Row(
                            "x", key, bytes([draw.randrange(256)]), draw.choice(["", "a", "b"]), draw.randrange(5)
                        )
                        unit.put_rows(topic, [row])
                        model[key] = row
                if draw.random() < 0.5:
                    assert list(unit.rows(topic, "x")) == [model[key] for key in sorted(model)]
            assert list(store.rows(topic, "x")) == [model[key] for key in sorted(model)]
            for listed in ("a", "b"):
                chosen = [row for row in model.values() if row.listed == listed]
                ordered = sorted(chosen, key=lambda row: (row.position, row.key))
                assert list(store.rows(topic, "x", listed)) == ordered

    def test_counters_add_up(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.count(topic, [("claims.won", 1), ("claims.lost", 2), ("tasks", 1), ("claims.won", 1)])
        with store.write(topic) as unit:
            unit.count(topic, [("claims.won", 10), ("tasks", -1)])
            assert unit.counters(topic, "claims.") == [("claims.lost", 2), ("claims.won", 12)]
        assert store.counters(topic) == [("claims.lost", 2), ("claims.won", 12), ("tasks", 0)]
        assert store.counters(topic, "claims.") == [("claims.lost", 2), ("claims.won", 12)]
        assert not store.counters(topic, "x")

    def test_facts_are_stated_and_changed(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        assert store.setting("key/1") is None
        with store.write(topic) as unit:
            unit.put_fact(topic, "key/1", "one")
            assert unit.setting("key/1") == "one"
        with store.write(topic) as unit:
            unit.put_fact(topic, "key/1", "two")
        assert store.setting("key/1") == "two"
