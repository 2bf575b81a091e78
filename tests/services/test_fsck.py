"""fsck finds nothing wrong with what was recorded in the ordinary way, and names every kind of damage."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import orjson
import pytest

from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.content import body
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE, Note
from redkey.ledger.signer import Signer
from redkey.services.acts import directly
from redkey.services.fsck.check import Fsck
from redkey.services.fsck.report import Report
from redkey.services.receipts import receipt_for
from redkey.stores.keys import SignerKeys, read_key
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.inspection import Inspection
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode
from tests.harness import tampering
from tests.harness.tampering import BASE, records, rewrite, sign_again, sql, swap
from tests.harness.workshop import LARGE, SECRET, Workshop, checked, lived_in


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


def changed(old: str, new: str) -> Callable[[bytes], bytes]:
    """A wire with one value changed, valid and canonical as before."""

    def change(wire: bytes) -> bytes:
        text = wire.decode()
        assert old in text
        return canonical(decode(text.replace(old, new).encode()))

    return change


def find(directory: Path, event: str, *, last: bool = False) -> int:
    """The sequence of the first, or last, record of a type."""
    found = [one.sequence for one in records(directory) if decode(one.wire)["type"] == event]
    return found[-1 if last else 0]


def test_what_was_recorded_in_the_ordinary_way_is_clean(directory: Path) -> None:
    report = checked(directory)
    assert report.clean, report.faults
    assert report.figures["records"] == len(records(directory)) > 600
    assert report.figures["contents erased"] == 1
    assert report.figures["checkpoints"] == sql(directory, "SELECT count(*) FROM checkpoint")[0][0] > 2
    assert report.figures["rows"] == sql(directory, "SELECT count(*) FROM row")[0][0]


def test_a_store_in_use_is_checked_at_one_moment(directory: Path) -> None:
    with SqliteStore(directory) as store, Inspection(directory) as evidence:
        before = store.head(store.topics()[0]).sequence
        open_signing(store).add_signer()
        report = Fsck(evidence).run()
        assert report.clean, report.faults
        assert report.figures["records"] == before < store.head(store.topics()[0]).sequence


def test_an_empty_store_is_clean(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "data").close()
    assert checked(tmp_path / "data").clean


def test_only_the_chosen_topic_is_checked(directory: Path) -> None:
    with SqliteStore(directory) as store:
        other = store.create_topic()
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 5)
    assert checked(directory, only=(other,)).clean
    assert not checked(directory).clean


Damage = Callable[[Path], object]


def record_changed(directory: Path) -> int:
    sequence = find(directory, "task.complete")
    wire = changed('"cost_usd":0.25', '"cost_usd":9.25')(records(directory)[sequence - 1].wire)
    sql(directory, "UPDATE record SET wire = ? WHERE position = ?", wire, BASE + sequence)
    return sequence


def hash_changed(directory: Path) -> int:
    sql(directory, "UPDATE record SET running_hash = zeroblob(48) WHERE position = ?", BASE + 300)
    return 300


def time_changed(directory: Path) -> int:
    sql(directory, "UPDATE record SET timestamp = timestamp - 1000000000 WHERE position = ?", BASE + 33)
    return 33


def payer_changed(directory: Path) -> int:
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 256)
    return 256


def deleted(directory: Path) -> int:
    sql(directory, "DELETE FROM record WHERE position = ?", BASE + 100)
    return 100


def deleted_before_a_block(directory: Path) -> int:
    sql(directory, "DELETE FROM record WHERE position = ?", BASE + 256)
    return 256


def many_deleted(directory: Path) -> int:
    sql(directory, "DELETE FROM record WHERE position BETWEEN ? AND ?", BASE + 200, BASE + 599)
    return 200


def inserted(directory: Path) -> int:
    last = tampering.head(directory)
    row = sql(
        directory, "SELECT timestamp, payer, running_hash, subjects, wire FROM record WHERE position = ?", BASE + 40
    )
    values = (BASE + last.sequence + 1, last.timestamp + 1, *row[0][1:])
    sql(directory, "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", *values)
    return last.sequence + 1


def swapped(directory: Path) -> int:
    swap(directory, 50, 60)
    return 50


def strayed(directory: Path) -> int:
    sql(
        directory, "UPDATE record SET position = ? WHERE position = ?", BASE + (1 << 39), BASE + len(records(directory))
    )
    return 1 << 39


def tile_changed(directory: Path) -> int:
    ((hashes,),) = sql(directory, "SELECT hashes FROM tile WHERE level = 0 AND number = 1")
    sql(directory, "UPDATE tile SET hashes = ? WHERE number = 1", hashes[:64] + bytes(32) + hashes[96:])
    return 259


def tile_missing(directory: Path) -> int:
    sql(directory, "DELETE FROM tile WHERE number = 0")
    return 0


def tile_cut(directory: Path) -> int:
    sql(directory, "UPDATE tile SET hashes = substr(hashes, 1, 100) WHERE number = 0")
    return 0


def tile_extra(directory: Path) -> int:
    sql(directory, "INSERT INTO tile VALUES (1, 0, 7, zeroblob(8192))")
    return 0


def wire_invalid(directory: Path) -> int:
    sequence = find(directory, "task.started")
    rewrite(directory, sequence, lambda wire: wire.replace(b"task.started", b"task.stopped"))
    return sequence


def wire_not_canonical(directory: Path) -> int:
    rewrite(directory, 77, lambda wire: wire.replace(b'{"payload"', b'{ "payload"', 1))
    return 77


def rewritten(directory: Path) -> int:
    sequence = find(directory, "task.complete")
    rewrite(directory, sequence, changed('"cost_usd":0.25', '"cost_usd":0.24'))
    return 0


def left_out(directory: Path) -> int:
    """A forged claim, with every hash after it computed again."""
    rewrite(directory, find(directory, "artifact.ready", last=True), lambda wire: wire, drop=True)
    return 0


def slipped_in(directory: Path) -> int:
    """A forged artifact between two records, with every hash after it computed again."""
    sequence = find(directory, "artifact.ready")
    rewrite(directory, sequence, changed('"wire_id":"wire_0', '"wire_id":"wire_7'), add=True)
    return sequence + 1


def stream_cut(directory: Path) -> int:
    sequence = find(directory, "task.started", last=True)
    rewrite(directory, sequence, lambda wire: wire, drop=True)
    return sequence


def checkpoint_changed(directory: Path) -> int:
    ((size, data),) = sql(directory, "SELECT size, note FROM checkpoint ORDER BY size LIMIT 1")
    _, note = open_checkpoint(data)
    (line,) = note.signatures
    forged = msgspec.structs.replace(line, data=bytes([line.data[0] ^ 1]) + line.data[1:])
    sql(directory, "UPDATE checkpoint SET note = ? WHERE size = ?", Note(note.text, (forged,)).encode(), size)
    return int(size)


def checkpoint_garbage(directory: Path) -> int:
    ((size,),) = sql(directory, "SELECT min(size) FROM checkpoint")
    sql(directory, "UPDATE checkpoint SET note = x'00ff' WHERE size = ?", size)
    return size


def checkpoint_beyond(directory: Path) -> int:
    ((size, note),) = sql(directory, "SELECT size, note FROM checkpoint ORDER BY size DESC LIMIT 1")
    sql(directory, "UPDATE checkpoint SET size = ?, note = ? WHERE size = ?", size + 9, note, size)
    return size + 9


def tail_cut(directory: Path) -> int:
    """The last records gone, and the checkpoints in the database with them: only the one outside tells."""
    last = len(records(directory))
    sql(directory, "DELETE FROM record WHERE position > ?", BASE + last - 20)
    sql(directory, "DELETE FROM checkpoint WHERE size > ?", last - 20)
    return last


def signed_by_stranger(directory: Path) -> int:
    origin = open_checkpoint(sql(directory, "SELECT note FROM checkpoint")[0][0])[0].origin
    sign_again(directory, Signer.generate(origin.rsplit("/", 2)[0]))
    return len(records(directory))


def signed_by_retired(directory: Path) -> int:
    """Forge with a key that was retired and whose secret was not deleted."""
    old = read_key(directory / "keys" / "signer-0001.key", 1)
    with SqliteStore(directory) as store:
        signing = open_signing(store)
        signing.add_signer()
        signing.retire_signer(old.verifier)
    sign_again(directory, old)
    return len(records(directory))


def cosignature_changed(directory: Path) -> int:
    """Flip one bit in the checkpoint that receipts carry: the rest still looks like a witness's line."""
    with SqliteStore(directory) as store:
        topic, signing = store.topics()[0], open_signing(store)
        witness = Signer.generate("witness.example/w", COSIGNATURE)
        ((size, note),) = store.checkpoints(topic, 1)
        line = cosign(witness, open_checkpoint(note)[1].text, 1_790_000_000)
        answer, keys = line.line().encode(), [witness.verifier]
        directly(store)(topic, lambda unit: signing.add_cosignatures(unit, topic, answer, keys))
    assert checked(directory).clean
    changed = msgspec.structs.replace(line, data=line.data[:-1] + bytes([line.data[-1] ^ 1]))
    sql(directory, "UPDATE setting SET value = replace(value, ?, ?)", line.line(), changed.line())
    return size


def outside_gone(directory: Path) -> int:
    shutil.rmtree(directory / "checkpoints")
    return 0


def outside_changed(directory: Path) -> int:
    (path,) = (directory / "checkpoints").iterdir()
    path.write_bytes(path.read_bytes()[:40])
    return 0


def _an_ended_task(directory: Path) -> int:
    ((number,),) = sql(directory, "SELECT max(number) FROM row WHERE listed GLOB '*/completed'")
    return int(number)


def row_changed(directory: Path) -> int:
    change = "UPDATE row SET body = CAST(replace(CAST(body AS TEXT), 'completed', 'working') AS BLOB) WHERE number = ?"
    sql(directory, change, _an_ended_task(directory))
    return 0


def row_relisted(directory: Path) -> int:
    change = "UPDATE row SET listed = 'queue_podcast/available' WHERE number = ?"
    sql(directory, change, _an_ended_task(directory))
    return 0


def row_deleted(directory: Path) -> int:
    sql(directory, "DELETE FROM row WHERE kind = 'queue'")
    return 0


def row_added(directory: Path) -> int:
    sql(
        directory,
        "INSERT INTO row (topic, kind, key, body, listed, position) VALUES (1, 'role', 'role_boss', x'7b7d', '', 0)",
    )
    return 0


def counter_changed(directory: Path) -> int:
    sql(directory, "UPDATE counter SET amount = amount - 1 WHERE name GLOB 'type/*/task.complete/events'")
    return 0


def content_changed(directory: Path) -> int:
    sql(directory, "UPDATE content SET data = zeroblob(length(data)) WHERE number = 9")
    return 0


def content_file_changed(directory: Path) -> int:
    path = directory / "content" / "1.0.1001" / body(LARGE).sha256
    path.write_bytes(LARGE[:-1] + b"!")
    return 0


def content_file_gone(directory: Path) -> int:
    (directory / "content" / "1.0.1001" / body(LARGE).sha256).unlink()
    return 0


def content_gone(directory: Path) -> int:
    sql(directory, "DELETE FROM content WHERE number = 9")
    return 0


def content_back(directory: Path) -> int:
    digest = bytes.fromhex(body(SECRET).sha256)
    sql(directory, "UPDATE content SET data = ? WHERE sha256 = ?", SECRET, digest)
    return 0


def content_erased_in_silence(directory: Path) -> int:
    sql(directory, "UPDATE content SET erased = 1, data = zeroblob(length(data)) WHERE number = 9")
    return 0


def structure_gone(directory: Path) -> int:
    sql(directory, "DELETE FROM content WHERE pinned = 1")
    return find(directory, "credits.priced")


def structure_unpinned(directory: Path) -> int:
    sql(directory, "UPDATE content SET pinned = 0 WHERE pinned = 1")
    return find(directory, "credits.priced")


def index_entry_gone(directory: Path) -> int:
    sql(directory, "DELETE FROM event WHERE position = ? AND subject GLOB 'task_*'", BASE + 200)
    return 200


def index_entry_added(directory: Path) -> int:
    sql(directory, "INSERT INTO event VALUES ('task_of_somebody_else', ?)", BASE + 200)
    return 200


def wire_id_unfindable(directory: Path) -> int:
    sql(directory, "DELETE FROM event WHERE position = ? AND subject GLOB '#*'", BASE + 111)
    return 111


def subjects_changed(directory: Path) -> int:
    sql(directory, "UPDATE record SET subjects = replace(subjects, 'task_', 'tusk_') WHERE position = ?", BASE + 200)
    return 200


def wire_id_changed(directory: Path) -> int:
    sql(directory, "UPDATE record SET subjects = replace(subjects, '#wire_', '#wore_') WHERE position = ?", BASE + 657)
    return 657


def wire_repeated(directory: Path) -> int:
    """The last wire once more, chained as it must be."""
    with SqliteStore(directory) as store, store.write(store.topics()[0]) as unit:
        from redkey.ledger.ports import Entry

        topic = store.topics()[0]
        last = store.read(topic, store.head(topic).sequence - 1, 1)[0]
        unit.append(topic, [Entry(last.wire, decode(last.wire)["wire_id"])], last.sequence)
    return last.sequence + 1


def epoch_set_back(directory: Path) -> int:
    sql(directory, "UPDATE setting SET value = '7' WHERE name = 'epoch'")
    return 0


def setting_broken(directory: Path) -> int:
    sql(directory, "UPDATE setting SET value = 'x' WHERE name = 'epoch'")
    return 0


def workspace_misled(directory: Path) -> int:
    sql(directory, "UPDATE setting SET value = '1.0.9' WHERE name GLOB 'workspace/*'")
    return 0


def key_hash_replaced(directory: Path) -> int:
    """Anyone who knows the new secret could log in under the old name."""
    sql(directory, "UPDATE setting SET value = replace(value, ?, ?) WHERE name GLOB 'key/*'", "0" * 64, "1" * 64)
    return find(directory, "key.created")


def checkpoint_deleted(directory: Path) -> int:
    """Delete one in the middle, of which nothing else is kept."""
    sizes = [size for (size,) in sql(directory, "SELECT size FROM checkpoint ORDER BY size")]
    sql(directory, "DELETE FROM checkpoint WHERE size = ?", sizes[1])
    return int(sizes[1])


def outside_set_back(directory: Path) -> int:
    """Put an older one in force outside: a tail cut up to it would not be noticed at the next start."""
    ((size, note),) = sql(directory, "SELECT size, note FROM checkpoint ORDER BY size LIMIT 1")
    (directory / "checkpoints" / "1.0.1001").write_bytes(note)
    return int(size)


def content_pinned(directory: Path) -> int:
    """Pin a body: it could not be erased any more."""
    sql(directory, "UPDATE content SET pinned = 1 WHERE number = 9")
    return 0


def subjects_garbled(directory: Path) -> int:
    """In the block that is not indexed yet, whose subjects are looked through."""
    sql(directory, "UPDATE record SET subjects = '[x' WHERE position = ?", BASE + 650)
    return 650


def layout_garbled(directory: Path) -> int:
    connection = sqlite3.connect(directory / "redkey.db", isolation_level=None)
    connection.execute("PRAGMA writable_schema = 1")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'amount', 'amouxt') WHERE name = 'counter'")
    connection.close()
    return 0


def layout_changed(directory: Path) -> int:
    sql(directory, "DROP INDEX row_listed")
    return 0


def trigger_added(directory: Path) -> int:
    sql(directory, "CREATE TRIGGER sneaky AFTER INSERT ON record BEGIN DELETE FROM content; END")
    return 0


def topic_gone(directory: Path) -> int:
    sql(directory, "DELETE FROM topic")
    return 0


DAMAGES = [
    (record_changed, "running_hash_wrong"),
    (hash_changed, "running_hash_wrong"),
    (time_changed, "timestamp_order"),
    (time_changed, "running_hash_wrong"),
    (payer_changed, "running_hash_wrong"),
    (deleted, "record_missing"),
    (deleted_before_a_block, "record_missing"),
    (many_deleted, "record_missing"),
    (inserted, "running_hash_wrong"),
    (swapped, "running_hash_wrong"),
    (strayed, "sequence_gap"),
    (tile_changed, "tile_wrong"),
    (tile_missing, "tile_missing"),
    (tile_cut, "tile_wrong"),
    (tile_extra, "tile_extra"),
    (wire_invalid, "wire_invalid"),
    (wire_not_canonical, "wire_not_canonical"),
    (rewritten, "checkpoint_contradicted"),
    (left_out, "checkpoint_ahead"),
    (slipped_in, "stream_gap"),
    (stream_cut, "stream_gap"),
    (checkpoint_changed, "signature_invalid"),
    (checkpoint_garbage, "checkpoint_unreadable"),
    (checkpoint_beyond, "checkpoint_unreadable"),
    (tail_cut, "checkpoint_ahead"),
    (signed_by_stranger, "signer_unknown"),
    (signed_by_retired, "signer_retired"),
    (cosignature_changed, "witnessed_changed"),
    (outside_gone, "checkpoint_outside_missing"),
    (outside_changed, "checkpoint_unreadable"),
    (outside_set_back, "checkpoint_set_back"),
    (checkpoint_deleted, "checkpoint_missing"),
    (row_changed, "row_wrong"),
    (row_relisted, "row_wrong"),
    (row_deleted, "row_missing"),
    (row_added, "row_extra"),
    (counter_changed, "counter_wrong"),
    (content_changed, "content_wrong"),
    (content_file_changed, "content_wrong"),
    (content_file_gone, "content_lost"),
    (content_gone, "content_missing"),
    (content_back, "content_not_erased"),
    (content_erased_in_silence, "content_erased_unrecorded"),
    (structure_gone, "structure_missing"),
    (structure_unpinned, "structure_unpinned"),
    (content_pinned, "content_pinned_wrongly"),
    (key_hash_replaced, "key_hash_replaced"),
    (index_entry_gone, "index_missing"),
    (index_entry_added, "index_extra"),
    (wire_id_unfindable, "index_missing"),
    (subjects_changed, "index_wrong"),
    (wire_id_changed, "index_wrong"),
    (wire_repeated, "wire_repeated"),
    (epoch_set_back, "checkpoint_origin"),
    (setting_broken, "setting_wrong"),
    (workspace_misled, "setting_wrong"),
    (subjects_garbled, "index_wrong"),
    (layout_garbled, "layout_changed"),
    (layout_changed, "layout_changed"),
    (trigger_added, "layout_changed"),
    (topic_gone, "topic_unknown"),
    (topic_gone, "topic_missing"),
]


@pytest.mark.parametrize(("damage", "code"), DAMAGES, ids=[f"{damage.__name__}-{code}" for damage, code in DAMAGES])
def test_each_kind_of_damage_is_named(directory: Path, damage: Callable[[Path], int], code: str) -> None:
    sequence = damage(directory)
    report = checked(directory)
    named = [fault for fault in report.faults if fault.code == code]
    assert named, report.faults
    if sequence:
        assert sequence in {fault.sequence for fault in named}, named


def test_what_was_not_damaged_is_not_accused(directory: Path) -> None:
    sequence = record_changed(directory)
    report = checked(directory)
    assert {fault.sequence for fault in report.faults if fault.sequence} == {sequence}
    # The tiles still have the original hashes, so the signed roots confirm all the rest.
    assert "checkpoint_contradicted" not in report.errors


def test_a_rewritten_history_is_placed_between_two_checkpoints(directory: Path) -> None:
    sizes = [size for (size,) in sql(directory, "SELECT size FROM checkpoint ORDER BY size")]
    rewritten(directory)
    (fault,) = [one for one in checked(directory).faults if one.code == "checkpoint_contradicted"]
    assert f"in {sizes[1] + 1} to {sizes[2]}" in fault.message


def test_a_record_that_was_slipped_in_contradicts_every_checkpoint_after_it(directory: Path) -> None:
    slipped_in(directory)
    assert checked(directory).errors["checkpoint_contradicted"] >= 2


def test_damage_is_bounded_in_the_list_and_counted_in_full(directory: Path) -> None:
    sql(directory, "UPDATE record SET payer = '1.0.3'")
    sql(directory, "DELETE FROM event")
    report = checked(directory)
    assert len(report.faults) == 1000
    assert sum(report.errors.values()) > 2000


# Files.


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_database_is_named(directory: Path, share: float) -> None:
    path = directory / "redkey.db"
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    report = _checked_or_refused(directory)
    assert report.errors["database_damaged"] or report.errors["record_unreadable"], report.faults


@pytest.mark.parametrize("content", [b"", b"garbage", b"SQLite format 3\x00" + bytes(100), os.urandom(1 << 16)])
def test_garbage_in_place_of_the_database_is_named(directory: Path, content: bytes) -> None:
    (directory / "redkey.db").write_bytes(content)
    assert not _checked_or_refused(directory).clean


def test_garbage_pages_in_the_middle_are_named_and_the_rest_is_checked(directory: Path) -> None:
    (place,) = _pages_of(directory, "record")[3:4]
    whole = len(records(directory))
    with (directory / "redkey.db").open("r+b") as file:
        file.seek((place - 1) * 4096)
        file.write(b"\xff" * 4096)
    report = checked(directory)
    lost = [fault.sequence for fault in report.faults if fault.code == "record_unreadable"]
    assert 0 < len(lost) < 20
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert report.figures["records"] == whole
    assert set(report.errors) <= {"record_unreadable", "database_damaged", "running_hash_wrong", "sequence_gap"}


def _pages_of(directory: Path, table: str) -> list[int]:
    """The leaf pages of a table in its order, read from the file itself."""
    data = (directory / "redkey.db").read_bytes()
    ((root,),) = sql(directory, "SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
    page = data[(root - 1) * 4096 : root * 4096]
    assert page[0] == 5, "the table is small enough to have one inner page"
    count = int.from_bytes(page[3:5])
    cells = [int.from_bytes(page[12 + 2 * index : 14 + 2 * index]) for index in range(count)]
    return [int.from_bytes(page[cell : cell + 4]) for cell in cells]


def _checked_or_refused(directory: Path) -> Report:
    from redkey.cli.fsck import _run

    return _run(directory, None, [], (), as_json=True)


def test_nothing_in_the_directory_is_changed(directory: Path) -> None:
    def contents() -> dict[str, bytes]:
        names = (path for path in directory.rglob("*") if path.is_file() and not re.search("-(wal|shm)$", path.name))
        return {str(path): path.read_bytes() for path in names}

    before = contents()
    checked(directory)
    assert contents() == before


def test_a_directory_without_write_permission_can_be_checked(directory: Path) -> None:
    for name in ("redkey.db-wal", "redkey.db-shm"):
        (directory / name).unlink(missing_ok=True)
    directory.chmod(0o500)
    try:
        assert checked(directory).clean
    finally:
        directory.chmod(0o700)


# What others hold.


def receipts(directory: Path, *sequences: int) -> list[tuple[str, bytes]]:
    with SqliteStore(directory) as store:
        topic, signing = store.topics()[0], open_signing(store)
        found = []
        for sequence in sequences:
            wire_id = decode(store.read(topic, sequence - 1, 1)[0].wire)["wire_id"]
            document = receipt_for(store, topic, wire_id, signing, base_url="http://localhost")
            found.append((f"{sequence}.json", orjson.dumps(document)))
        return found


def test_receipts_of_a_whole_ledger_agree(directory: Path) -> None:
    report = checked(directory, receipts(directory, 1, 300, 657))
    assert report.clean, report.faults
    assert report.figures["receipts"] == 3


def test_a_receipt_tells_that_the_tail_was_cut(directory: Path) -> None:
    held = receipts(directory, 10, len(records(directory)))
    last = len(records(directory))
    tail_cut(directory)
    shutil.rmtree(directory / "checkpoints")
    (directory / "checkpoints").mkdir()
    report = checked(directory, held)
    (fault, *_) = [one for one in report.faults if one.code == "receipt_beyond_head"]
    assert fault.sequence == last
    assert f"the ledger ends at {last - 20}" in fault.message


def test_a_receipt_tells_that_the_history_was_rewritten_and_signed_again(directory: Path) -> None:
    sequence = find(directory, "task.complete")
    held = receipts(directory, sequence)
    signer = read_key(directory / "keys" / "signer-0001.key", 1)
    rewrite(directory, sequence, changed('"cost_usd":0.25', '"cost_usd":0.24'))
    sql(directory, "DELETE FROM checkpoint")
    sql(directory, "INSERT INTO checkpoint VALUES (1, 0, ?)", (directory / "checkpoints" / "1.0.1001").read_bytes())
    sign_again(directory, signer)
    report = checked(directory, held)
    assert {"receipt_contradicts"} <= set(report.errors), report.faults
    assert sequence in {fault.sequence for fault in report.faults if fault.code == "receipt_contradicts"}


def test_a_bare_checkpoint_is_held_against_the_ledger(directory: Path) -> None:
    note = (directory / "checkpoints" / "1.0.1001").read_bytes()
    assert checked(directory, [("note", note)]).clean
    tail_cut(directory)
    assert "receipt_beyond_head" in checked(directory, [("note", note)]).errors


def test_a_receipt_that_was_tampered_with_accuses_nobody(directory: Path) -> None:
    ((name, data),) = receipts(directory, 20)
    report = checked(directory, [(name, data.replace(b'"sequence":20', b'"sequence":21'))])
    assert report.clean
    assert [note.code for note in report.notes] == ["receipt_unreadable"]


def test_a_receipt_of_another_log_is_told_apart(directory: Path, tmp_path: Path) -> None:
    with Workshop(tmp_path / "other", lane=1) as other:
        other.furnish()
        other.signing.sign()
    report = checked(directory, receipts(tmp_path / "other", 1))
    assert report.clean
    assert [note.code for note in report.notes] == ["receipt_other_log"]


def test_a_receipt_without_proof_is_looked_for_by_its_event(directory: Path) -> None:
    with SqliteStore(directory) as store:
        topic = store.topics()[0]
        wire_id = decode(store.read(topic, 600, 1)[0].wire)["wire_id"]
        short = receipt_for(store, topic, wire_id, open_signing(store), base_url="http://localhost", offline=False)
    held = [("short.json", orjson.dumps(short))]
    assert checked(directory, held).clean
    sql(directory, "DELETE FROM record WHERE position > ?", BASE + 600)
    assert "receipt_beyond_head" in checked(directory, held).errors


def test_a_key_that_was_given_must_have_signed(directory: Path) -> None:
    from redkey.ledger.trust import TrustedKey

    signer = read_key(directory / "keys" / "signer-0001.key", 1)
    for key, clean in ((signer.verifier, True), (Signer.generate(signer.verifier.name).verifier, False)):
        with Inspection(directory) as evidence:
            report = Fsck(evidence, keys=[TrustedKey(key)]).run()
        assert report.clean is clean
        assert ("key_did_not_sign" in report.errors) is not clean


def test_rotated_keys_leave_a_clean_ledger(directory: Path) -> None:
    with SqliteStore(directory) as store:
        signing = open_signing(store)
        old = signing.signers[0].verifier
        signing.add_signer()
        signing.retire_signer(old)
        assert [str(key) for key in SignerKeys(directory / "keys", old.name).retired()] == [str(old)]
    report = checked(directory)
    assert report.clean, report.faults


def test_the_database_is_told_apart_from_other_programs(directory: Path) -> None:
    connection = sqlite3.connect(directory / "redkey.db")
    connection.execute("PRAGMA application_id = 7")
    connection.commit()
    connection.close()
    assert "database_damaged" in _checked_or_refused(directory).errors
