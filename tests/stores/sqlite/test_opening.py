"""A data directory opens privately, and does not open where that would not be safe."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from redkey.errors import StoreRefused
from redkey.stores.sqlite import SqliteStore, connection
from tests.conformance.stores.harness import append, new_topic


def refusal(directory: Path, **options: bool) -> StoreRefused:
    with pytest.raises(StoreRefused) as refused:
        SqliteStore(directory, **options)
    return refused.value


def checkpoint(size: int) -> bytes:
    return b"redkey/log/wk_1/e1\n%d\nroot\n\nsignature\n" % size


def test_everything_it_makes_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with SqliteStore(tmp_path / "deep" / "data") as store:
            topic = new_topic(store)
            append(store, topic, 1)
            with store.write(topic) as unit:
                unit.put_checkpoint(topic, 1, checkpoint(1))
            found = {path: path.stat().st_mode for path in (tmp_path / "deep" / "data").rglob("*")}
            assert {path.name for path in found} >= {"redkey.db", "redkey.db-wal", "redkey.db-shm", "redkey.lock"}
            assert stat.S_IMODE((tmp_path / "deep" / "data").stat().st_mode) == 0o700
    finally:
        os.umask(before)
    for path, mode in found.items():
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o720])
def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    assert refusal(tmp_path).code == "unsafe_directory"
    assert not list(tmp_path.iterdir())


def test_a_directory_that_others_may_only_read_is_taken(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    SqliteStore(tmp_path).close()


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert refusal(tmp_path).code == "unsafe_directory"


def test_nothing_is_made_where_nothing_may_be_made(tmp_path: Path) -> None:
    assert refusal(tmp_path / "data", create=False).code == "no_store"
    assert refusal(tmp_path, create=False).code == "no_store"
    assert not list(tmp_path.iterdir())
    SqliteStore(tmp_path / "data").close()
    SqliteStore(tmp_path / "data", create=False).close()


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    assert refusal(tmp_path / "data").code == "no_store"


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "redkey.db").write_bytes(b"my shopping list\n" * 500)
    assert refusal(tmp_path).code == "not_redkey"
    assert (tmp_path / "redkey.db").read_bytes() == b"my shopping list\n" * 500


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "redkey.db")
    other.execute("CREATE TABLE photo (name)")
    other.close()
    before = (tmp_path / "redkey.db").read_bytes()
    assert refusal(tmp_path).code == "not_redkey"
    assert (tmp_path / "redkey.db").read_bytes() == before
    assert not (tmp_path / "redkey.db-wal").exists()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    newer = sqlite3.connect(tmp_path / "redkey.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    refused = refusal(tmp_path)
    assert refused.code == "newer_format"
    assert "99" in refused.message


def test_a_format_that_becomes_newer_under_an_open_store_stops_its_units(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        newer = sqlite3.connect(tmp_path / "redkey.db")
        newer.execute("PRAGMA user_version = 99")
        newer.close()
        with pytest.raises(StoreRefused) as refused:
            append(store, topic, 1)
        assert refused.value.code == "newer_format"


@pytest.mark.parametrize(
    ("name", "value"),
    [("synchronous", "OFF"), ("synchronous", "NORMAL"), ("journal_mode", "DELETE"), ("secure_delete", 0)],
)
def test_settings_that_could_lose_or_keep_what_they_must_not_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setitem(connection.SETTINGS, name, value)
    refused = refusal(tmp_path)
    assert refused.code == "unsafe_settings"
    assert name in refused.message


def test_a_head_behind_the_checkpoint_kept_outside_is_refused(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "data") as store:
        topic = new_topic(store)
        append(store, topic, 5)
    shutil.copy(tmp_path / "data" / "redkey.db", tmp_path / "older.db")
    with SqliteStore(tmp_path / "data") as store:
        append(store, topic, 1)
        with store.write(topic) as unit:
            unit.put_checkpoint(topic, 6, checkpoint(6))
        assert store.kept_checkpoints.last(topic) == checkpoint(6)
    SqliteStore(tmp_path / "data").close()
    shutil.copy(tmp_path / "older.db", tmp_path / "data" / "redkey.db")
    refused = refusal(tmp_path / "data")
    assert refused.code == "head_behind_checkpoint"
    assert "record 5" in refused.message
    assert "signed at 6" in refused.message


def test_a_database_that_vanished_is_noticed_by_its_checkpoint(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 1)
        with store.write(topic) as unit:
            unit.put_checkpoint(topic, 1, checkpoint(1))
    (tmp_path / "redkey.db").unlink()
    assert refusal(tmp_path).code == "head_behind_checkpoint"


def test_a_checkpoint_kept_outside_never_becomes_smaller(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 3)
        for size in (2, 3, 1):
            with store.write(topic) as unit:
                unit.put_checkpoint(topic, size, checkpoint(size))
        assert store.kept_checkpoints.last(topic) == checkpoint(3)


def test_a_checkpoint_that_was_not_yet_in_force_is_passed_over(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 1)
        # The process dies between writing the new checkpoint and the commit.
        store.kept_checkpoints.prepare(topic, checkpoint(2))
    with SqliteStore(tmp_path) as store:
        assert store.kept_checkpoints.topics() == []


def test_a_checkpoint_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    (tmp_path / "checkpoints" / "1.0.1001").write_bytes(b"\x00\x01")
    assert refusal(tmp_path).code == "checkpoint_unreadable"


@pytest.mark.parametrize("state", ["empty", "header"])
def test_a_database_whose_making_was_cut_short_is_made_again(tmp_path: Path, state: str) -> None:
    (tmp_path / "redkey.db").touch(mode=0o600)
    if state == "header":
        begun = sqlite3.connect(tmp_path / "redkey.db")
        begun.execute("PRAGMA journal_mode = WAL")
        begun.close()
    with SqliteStore(tmp_path) as store:
        assert new_topic(store) == "1.0.1001"


def test_a_refused_directory_can_be_opened_when_it_is_mended(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert refusal(tmp_path).code == "unsafe_directory"
    tmp_path.chmod(0o700)
    with SqliteStore(tmp_path) as store:
        new_topic(store)
