"""Large bodies are files: durable before they are named, removed with a unit that fails, never searched for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from redkey.errors import StoreFailed, StoreFull, StoreMisused
from redkey.ledger.content import body
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryStore
from redkey.stores.sqlite import SqliteStore, content_files
from redkey.stores.sqlite.content_files import ContentFiles
from tests.conformance.stores.harness import Broken, new_topic, spoil

SMALL, LARGE = body(b"s" * 16 * 1024), body(b"l" * (16 * 1024 + 1))


def bodies(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "content").rglob("*") if path.is_file())


def test_only_bodies_over_16_kib_are_files(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_content(topic, [SMALL, LARGE])
        assert bodies(tmp_path) == [LARGE.sha256]
        assert (tmp_path / "content" / topic / LARGE.sha256).read_bytes() == LARGE.data


def test_a_unit_that_fails_takes_its_files_away(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: (unit.put_content(topic, [LARGE]), unit.content(topic, LARGE.sha256)))
        assert bodies(tmp_path) == []
        with store.write(topic) as unit:
            unit.put_content(topic, [LARGE])
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: (unit.put_content(topic, [LARGE]), unit.content(topic, LARGE.sha256)))
        assert bodies(tmp_path) == [LARGE.sha256]


def test_a_file_whose_unit_never_committed_is_removed_at_opening(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_content(topic, [LARGE])
    left, kept = body(b"x" * 20_000), LARGE
    # The process died after writing these and before its commit.
    on_disk = ContentFiles(tmp_path)
    on_disk.mark([(topic, left.sha256), (topic, kept.sha256), (topic, "0" * 64), ("1.0.77", "1" * 64)])
    on_disk.write(topic, [(left.sha256, left.data[:5])])
    with SqliteStore(tmp_path) as store:
        assert bodies(tmp_path) == [kept.sha256]
        assert store.content(topic, kept.sha256) == kept
        assert store.content(topic, left.sha256) is None


def test_files_and_their_names_are_synced_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens is written down in order: every sync by the file it was asked for, and the commit."""
    happened: list[str] = []
    real_sync = os.fsync

    def sync(descriptor: int) -> None:
        happened.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_sync(descriptor)

    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", sync)
            with store.write(topic) as unit:
                run = unit._writer.run

                def traced(sql: str, parameters: object) -> None:
                    happened.append(sql)
                    run(sql, parameters)

                patch.setattr(unit._writer, "run", traced)
                unit.put_content(topic, [LARGE])
    assert happened == ["pending", "content", LARGE.sha256, topic, "COMMIT"]


@pytest.mark.parametrize(("damage", "code"), [(b"other bytes", "content_damaged"), (None, "content_missing")])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, damage: bytes | None, code: str) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with store.write(topic) as unit:
            unit.put_content(topic, [LARGE])
        path = tmp_path / "content" / topic / LARGE.sha256
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        with pytest.raises(StoreFailed) as failed:
            store.content(topic, LARGE.sha256)
        assert failed.value.code == code
        assert LARGE.sha256 in failed.value.message


def test_a_full_disk_fails_the_unit_and_leaves_no_part_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)

        def full(descriptor: int, data: bytes) -> None:
            os.write(descriptor, data[:100])
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(content_files, "write_all", full)
            with pytest.raises(StoreFull) as failed, store.write(topic) as unit:
                unit.put_content(topic, [LARGE])
            assert failed.value.code == "store_full"
        assert bodies(tmp_path) == []
        with store.write(topic) as unit:
            unit.put_content(topic, [LARGE])
        assert store.content(topic, LARGE.sha256) == LARGE


def incoming(directory: Path) -> list[Path]:
    return list((directory / "content" / "incoming").iterdir())


def test_an_upload_waits_in_a_file_of_its_own_and_leaves_none_behind(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        kept, dropped = store.upload(), store.upload()
        for upload in (kept, dropped):
            upload.write(LARGE.data)
            upload.finish()
        assert len(incoming(tmp_path)) == 2
        dropped.discard()
        with store.write(topic) as unit:
            unit.adopt(topic, kept)
        assert incoming(tmp_path) == []
        assert store.content(topic, LARGE.sha256) == LARGE
        kept.discard()
        assert store.content(topic, LARGE.sha256) == LARGE


def test_an_upload_of_a_process_that_died_is_removed_at_opening_and_a_living_ones_is_not(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        living = store.upload()
        living.write(LARGE.data)
        abandoned = tmp_path / "content" / "incoming" / ("0" * 32)
        abandoned.write_bytes(b"half a body")
        SqliteStore(tmp_path).close()
        assert incoming(tmp_path) == [living.path]
        living.discard()


def test_an_upload_of_another_kind_of_store_is_refused(tmp_path: Path) -> None:
    upload = MemoryStore(SystemClock()).upload()
    upload.finish()
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        with store.write(topic) as unit, pytest.raises(StoreMisused) as refused:
            unit.adopt(topic, upload)
        assert refused.value.code == "upload_foreign"
