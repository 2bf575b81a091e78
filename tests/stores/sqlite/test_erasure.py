"""Erased bytes are in no file of the data directory: not in the database, its log, a content file or a copy of one."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from redkey.ledger.content import body
from redkey.ledger.ports import Content
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.content_files import ContentFiles
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, new_topic

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"


def secret(draw: random.Random, size: int) -> Content:
    """A body made of one number over and over, so that any part of it can be recognised."""
    return body((b"<%012d>" % draw.randrange(10**12) * (size // 14 + 1))[:size])


def left_in(directory: Path, *items: Content) -> bool:
    """True when any part of a body, long enough to be recognised, is in any file.

    Another process reads the files: to open and close a database in a process that has it open drops its locks.
    """
    files = subprocess.run(["tar", "-cf", "-", "-C", directory, "."], stdout=subprocess.PIPE, check=True).stdout
    return bool({item.data[:14] for item in items} & set(re.findall(rb"<\d{12}>", files)))


@pytest.mark.parametrize("size", [40, 3000, 5000, 16 * 1024, 16 * 1024 + 1, 200_000])
def test_the_bytes_are_gone_when_the_unit_has_ended(tmp_path: Path, size: int) -> None:
    item = secret(random.Random(size), size)
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 3)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        assert left_in(tmp_path, item), "the test must be able to find what was not erased"
        with store.write(topic) as unit:
            assert unit.erase_content(topic, item.sha256)
        assert not left_in(tmp_path, item)
        check_topic(store, topic)
    assert not left_in(tmp_path, item)


@pytest.mark.parametrize("seed", range(40 if LONG else 4))
def test_no_history_of_putting_and_erasing_leaves_a_trace(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    kept: dict[tuple[str, str], Content] = {}
    with SqliteStore(tmp_path) as store:
        topics = [new_topic(store), new_topic(store)]
        for _ in range(60):
            with store.together():
                for _ in range(draw.randrange(1, 6)):
                    topic, item = draw.choice(topics), secret(draw, draw.choice([20, 300, 1500, 5000, 12000, 30000]))
                    with store.write(topic) as unit:
                        unit.put_content(topic, [item])
                    kept[topic, item.sha256] = item
            if kept and draw.random() < 0.7:
                (topic, name), item = draw.choice(list(kept.items()))
                with store.write(topic) as unit:
                    assert unit.erase_content(topic, name)
                del kept[topic, name]
                assert not left_in(tmp_path, item)
                if draw.random() < 0.3:
                    with store.write(topic) as unit:
                        unit.put_content(topic, [item])
                    kept[topic, name] = item
        for (topic, name), item in kept.items():
            assert store.content(topic, name) == item


# With rows deleted in place of overwritten, nine of the first thirty seeds leave something.
@pytest.mark.parametrize("seed", range(30 if LONG else 4))
def test_erasing_nearly_everything_leaves_no_copy_in_a_page_that_a_neighbour_moved_to(
    tmp_path: Path, seed: int
) -> None:
    """SQLite, asked to delete rows, moves their neighbours together, and forgets to clear where those were."""
    draw = random.Random(seed)
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        items = [secret(draw, draw.choice([20, 100, 300, 700, 1500, 3000])) for _ in range(400)]
        with store.write(topic) as unit:
            unit.put_content(topic, items)
        draw.shuffle(items)
        for done in range(20, 400, 20):
            with store.write(topic) as unit:
                for item in items[done - 20 : done]:
                    assert unit.erase_content(topic, item.sha256)
            assert not left_in(tmp_path, *items[:done])
        assert left_in(tmp_path, items[-1])


@pytest.mark.parametrize("size", [3000, 50_000])
def test_the_same_bytes_of_another_topic_stay(tmp_path: Path, size: int) -> None:
    item = secret(random.Random(size), size)
    with SqliteStore(tmp_path) as store:
        one, two = new_topic(store), new_topic(store)
        for topic in (one, two):
            with store.write(topic) as unit:
                unit.put_content(topic, [item])
        with store.write(one) as unit:
            unit.erase_content(one, item.sha256)
        assert store.content(two, item.sha256) == item
        with store.write(two) as unit:
            unit.erase_content(two, item.sha256)
        assert not left_in(tmp_path, item)


@pytest.mark.parametrize("size", [3000, 50_000])
def test_an_erasure_that_was_committed_before_the_process_died_is_finished_at_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    item = secret(random.Random(size), size)
    directory = tmp_path / "data"
    store = SqliteStore(directory)
    topic = new_topic(store)
    with store.write(topic) as unit:
        unit.put_content(topic, [item])
    # The process ends, as it were, right after the commit: nothing is settled, the log is as it was.
    with monkeypatch.context() as patch:
        patch.setattr("redkey.stores.sqlite.writer.Writer._settle", lambda self: None)
        with store.write(topic) as unit:
            unit.erase_content(topic, item.sha256)
    assert left_in(directory, item)
    with SqliteStore(directory) as again:
        assert not left_in(directory, item)
        assert again.content(topic, item.sha256) is None
        assert ContentFiles(directory).marks() == []
    store.close()


def test_an_erasure_that_a_reader_is_in_the_way_of_is_finished_after_the_next_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redkey.stores.sqlite.connection._BUSY_SECONDS", 0.05)
    item = secret(random.Random(1), 3000)
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        reader = sqlite3.connect(tmp_path / "redkey.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM content").fetchone()
        with store.write(topic) as unit:
            unit.erase_content(topic, item.sha256)
        assert store.content(topic, item.sha256) is None
        assert left_in(tmp_path, item), "an open snapshot of another program still holds the bytes"
        reader.execute("COMMIT")
        reader.close()
        append(store, topic, 1)
        assert not left_in(tmp_path, item)
        assert ContentFiles(tmp_path).marks() == []
