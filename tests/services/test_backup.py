"""A backup is of one moment and lists its files; a restored one continues in a new epoch, which is not a fork."""

from __future__ import annotations

import shutil
import stat
import threading
from pathlib import Path

import pytest

from redkey.cli.restore import _go_on
from redkey.errors import BackupRefused, StoreRefused, WitnessRefused
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.content import body
from redkey.ledger.trust import TrustedKey
from redkey.ledger.witness import Request
from redkey.services.backup import MANIFEST, Restored, begin_epoch, read_manifest
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryStore
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.copying import read_backup, take_backup, unpacked
from redkey.stores.witness import WitnessDirectory, create_witness
from redkey.wire.decode import decode
from tests.harness.tampering import sql
from tests.harness.workshop import LARGE, Workshop, checked, lived_in
from tests.services.test_receipts import Counter

WHEN = "2026-05-07T18:15:00Z"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


@pytest.fixture
def backup(directory: Path, tmp_path: Path) -> Path:
    take_backup(directory, tmp_path / "backup", WHEN, with_keys=False)
    return tmp_path / "backup"


def restore(backup: Path, target: Path, epoch: int | None = None) -> tuple[list[Restored], list[str]]:
    """What the command does."""
    manifest = read_backup(backup)
    with unpacked(backup, manifest, target) as aside:
        return _go_on(aside, epoch, keys=manifest.keys)


def test_a_backup_holds_everything_but_secrets(directory: Path, backup: Path) -> None:
    manifest = read_backup(backup)
    assert set(manifest.files) == {"redkey.db", "checkpoints/1.0.1001", f"content/1.0.1001/{body(LARGE).sha256}"}
    assert not manifest.keys
    (topic,) = manifest.topics
    assert topic.records == 747
    assert topic.checkpoint == (directory / "checkpoints" / "1.0.1001").read_text()
    assert (manifest.log_id, manifest.epoch, manifest.taken_at) == (_log_id(directory), 1, WHEN)
    assert checked(backup).clean


def _log_id(directory: Path) -> str:
    ((value,),) = sql(directory, "SELECT value FROM setting WHERE name = 'log_id'")
    return str(value)


def test_secrets_go_along_only_when_asked_for_and_stay_private(directory: Path, tmp_path: Path) -> None:
    (directory / "credentials.json").write_text("{}")
    manifest = take_backup(directory, tmp_path / "backup", WHEN, with_keys=True)
    assert {"keys/signer-0001.key", "keys/signer-0001.pub", "credentials.json"} <= set(manifest.files)
    for path in (tmp_path / "backup").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700


def test_a_backup_of_a_store_in_use_is_of_one_moment(tmp_path: Path) -> None:
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        stop = threading.Event()

        def go_on() -> None:
            while not stop.is_set():
                workshop.work(2)
                workshop.signing.sign()

        worker = threading.Thread(target=go_on)
        worker.start()
        try:
            for number in range(3):
                take_backup(tmp_path / "data", tmp_path / f"backup-{number}", WHEN, with_keys=False)
        finally:
            stop.set()
            worker.join()
    for number in range(3):
        report = checked(tmp_path / f"backup-{number}")
        assert report.clean, report.faults


def test_nothing_is_overwritten(directory: Path, backup: Path, tmp_path: Path) -> None:
    before = (backup / MANIFEST).read_bytes()
    with pytest.raises(BackupRefused) as refused:
        take_backup(directory, backup, WHEN, with_keys=False)
    assert refused.value.code == "target_exists"
    assert (backup / MANIFEST).read_bytes() == before
    with pytest.raises(BackupRefused) as refused:
        restore(backup, directory)
    assert refused.value.code == "target_exists"
    assert checked(directory).clean


def test_an_empty_folder_may_become_the_backup(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    take_backup(directory, tmp_path / "backup", WHEN, with_keys=False)
    assert read_backup(tmp_path / "backup").files


def test_a_backup_that_fails_leaves_nothing(directory: Path, tmp_path: Path) -> None:
    (directory / "content" / "1.0.1001" / body(LARGE).sha256).unlink()
    with pytest.raises(BackupRefused) as refused:
        take_backup(directory, tmp_path / "backup", WHEN, with_keys=False)
    assert refused.value.code == "source_damaged"

    def doubt(copy: Path) -> None:
        assert (copy / MANIFEST).exists()
        raise BackupRefused("not sound")

    shutil.copy(__file__, directory / "content" / "1.0.1001" / body(LARGE).sha256)
    with pytest.raises(BackupRefused):
        take_backup(lived_in(tmp_path / "sound"), tmp_path / "backup", WHEN, with_keys=False, check=doubt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "sound"]


def _change_database(backup: Path) -> None:
    sql(backup, "UPDATE record SET payer = '1.0.3' WHERE position = (SELECT max(position) FROM record)")
    for name in ("redkey.db-wal", "redkey.db-shm"):
        (backup / name).unlink(missing_ok=True)


def _add_file(backup: Path) -> None:
    (backup / "keys").mkdir()
    (backup / "keys" / "signer-0001.key").write_text("a gift")


def _remove_file(backup: Path) -> None:
    (backup / "checkpoints" / "1.0.1001").unlink()


def _cut_manifest(backup: Path) -> None:
    (backup / MANIFEST).write_bytes((backup / MANIFEST).read_bytes()[:-5])


def _no_manifest(backup: Path) -> None:
    (backup / MANIFEST).unlink()


def _newer(backup: Path) -> None:
    path = backup / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 2'))


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (_change_database, "backup_damaged"),
        (_add_file, "backup_damaged"),
        (_remove_file, "backup_damaged"),
        (_cut_manifest, "manifest_malformed"),
        (_no_manifest, "no_backup"),
        (_newer, "newer_format"),
    ],
)
def test_a_backup_that_was_changed_is_not_restored(backup: Path, tmp_path: Path, damage: object, code: str) -> None:
    damage(backup)  # type: ignore[operator]
    for attempt in (lambda: read_backup(backup), lambda: restore(backup, tmp_path / "restored")):
        with pytest.raises(BackupRefused) as refused:
            attempt()
        assert refused.value.code == code
    assert not (tmp_path / "restored").exists()


# Restoring.


def test_a_restored_log_says_so_on_each_topic_and_signs_under_a_new_origin(backup: Path, tmp_path: Path) -> None:
    (restored,), keys = restore(backup, tmp_path / "restored")
    report = checked(tmp_path / "restored")
    assert report.clean, report.faults
    old = open_checkpoint((backup / "checkpoints" / "1.0.1001").read_bytes())[0]
    with SqliteStore(tmp_path / "restored") as store:
        topic = store.topics()[0]
        facts = [decode(record.wire) for record in store.read(topic, 747, 100)]
        assert [wire["type"] for wire in facts] == ["ledger.restored", "signer.added", "signer.retired"]
        told = facts[0]["payload"]
        assert (told["epoch"], told["tree_size"], told["origin"]) == (2, old.size, old.origin)
        new = open_checkpoint(store.checkpoints(topic, 1)[0][1])[0]
        assert new.origin == restored.origin == old.origin[:-1] + "2"
        assert restored.records == 747
        assert [str(one.verifier) for one in open_signing(store).signers] == keys


def test_with_its_keys_a_restored_log_keeps_its_signer(directory: Path, tmp_path: Path) -> None:
    take_backup(directory, tmp_path / "backup", WHEN, with_keys=True)
    _, keys = restore(tmp_path / "backup", tmp_path / "restored")
    assert keys == [(directory / "keys" / "signer-0001.pub").read_text().strip()]
    with SqliteStore(tmp_path / "restored") as store:
        facts = [decode(record.wire)["type"] for record in store.read(store.topics()[0], 747, 100)]
    assert facts == ["ledger.restored"]
    assert checked(tmp_path / "restored").clean


def test_the_same_backup_restored_again_takes_a_later_epoch(backup: Path, tmp_path: Path) -> None:
    (first,), _ = restore(backup, tmp_path / "one")
    (second,), _ = restore(backup, tmp_path / "two", epoch=3)
    assert (first.origin[-2:], second.origin[-2:]) == ("e2", "e3")
    assert checked(tmp_path / "two").clean
    take_backup(tmp_path / "two", tmp_path / "again", WHEN, with_keys=False)
    with pytest.raises(BackupRefused) as refused:
        restore(tmp_path / "again", tmp_path / "three", epoch=3)
    assert refused.value.code == "epoch_closed"
    (third,), _ = restore(tmp_path / "again", tmp_path / "three")
    assert third.origin.endswith("e4")
    assert checked(tmp_path / "three").clean


def test_receipts_from_before_the_backup_stay_valid_and_later_ones_are_told_as_lost(tmp_path: Path) -> None:
    import orjson

    directory = lived_in(tmp_path / "data")
    take_backup(directory, tmp_path / "backup", WHEN, with_keys=True)
    with SqliteStore(directory) as store:
        early = Counter(store).receipt(300)
        open_signing(store).add_signer()
        late = Counter(store).receipt(store.head(store.topics()[0]).sequence)
    restore(tmp_path / "backup", tmp_path / "restored")
    documents = [("early.json", orjson.dumps(early)), ("late.json", orjson.dumps(late))]
    report = checked(tmp_path / "restored", documents)
    assert report.clean, report.faults
    assert [note.code for note in report.notes] == ["receipt_before_restore"]
    assert "late.json" in report.notes[0].message


def test_a_witness_sees_a_restore_and_not_a_fork(directory: Path, tmp_path: Path) -> None:
    take_backup(directory, tmp_path / "backup", WHEN, with_keys=True)
    create_witness(tmp_path / "witness", "witness.example/w")
    witness = WitnessDirectory(tmp_path / "witness", lambda: 1_790_000_000)
    with SqliteStore(directory) as store:
        signing = open_signing(store)
        witness.trust([TrustedKey(signing.signers[0].verifier)])
        signing.add_signer()
        witness.add_checkpoint(_request(store, 0))
        lost = _request(store, 0)
    restore(tmp_path / "backup", tmp_path / "restored")
    with SqliteStore(tmp_path / "restored") as store:
        witness.add_checkpoint(_request(store, 0))
    with pytest.raises(WitnessRefused) as refused:
        witness.add_checkpoint(lost)
    assert refused.value.code == "epoch_closed"
    assert not witness.evidence()


def _request(store: SqliteStore, old: int) -> Request:
    topic = store.topics()[0]
    checkpoint, note = open_checkpoint(store.checkpoints(topic, 1)[0][1])
    return Request(old, tuple(store.tree(topic).consistency_proof(old, checkpoint.size)), checkpoint, note)


def test_a_workspace_begun_after_a_restore_is_sound(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "restored")
    with Workshop(tmp_path / "restored", lane=5) as workshop:
        workshop.furnish()
        workshop.signing.sign()
    report = checked(tmp_path / "restored")
    assert report.clean, report.faults
    assert report.figures["topics"] == 2


def test_a_store_that_never_signed_goes_on_as_it_was() -> None:
    assert begin_epoch(MemoryStore(SystemClock()), None, keys=False) == []


def test_the_restored_database_is_not_behind_its_checkpoint(directory: Path, backup: Path, tmp_path: Path) -> None:
    """Why a restore is a command: an older database under the newer checkpoint is refused."""
    with SqliteStore(directory) as store:
        open_signing(store).add_signer()
    shutil.copy(backup / "redkey.db", directory / "redkey.db")
    with pytest.raises(StoreRefused) as refused:
        SqliteStore(directory)
    assert refused.value.code == "head_behind_checkpoint"


def test_a_manifest_reads_back_as_it_was_written(backup: Path) -> None:
    data = (backup / MANIFEST).read_bytes()
    assert read_manifest(data).encode() == data
