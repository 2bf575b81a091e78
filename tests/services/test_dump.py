"""Dumps: the same ledger gives the same bytes, and every line is checked when it is read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from redkey.errors import DumpRefused
from redkey.ledger.content import body
from redkey.ledger.record import Record
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.services import load as loading
from redkey.services.dump import PIECE_BYTES, Recorded, dump, read_dump
from redkey.services.load import Loader
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryStore
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.inspection import Inspection
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode
from tests.harness.tampering import BASE, records, sql
from tests.harness.workshop import LARGE, SECRET, Workshop, checked, lived_in


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


def lines_of(directory: Path, *, content: bool = False) -> list[bytes]:
    with Inspection(directory) as evidence:
        return list(dump(evidence, evidence.topics(), content=content))


def loaded(lines: list[bytes], directory: Path) -> Path:
    with SqliteStore(directory) as store:
        Loader(store).load(lines)
    return directory


def test_each_record_is_a_line_with_its_place_and_its_wire(directory: Path) -> None:
    lines = lines_of(directory)
    first, stored = orjson.loads(lines[0]), records(directory)[0]
    assert set(first) == {"wire", "hcs", "payer"}
    assert set(first["hcs"]) == {"topic_id", "sequence_number", "consensus_timestamp", "running_hash"}
    assert canonical(first["wire"]) == stored.wire
    assert (first["payer"], first["hcs"]["sequence_number"]) == ("1.0.2", 1)
    assert len(lines) == len(records(directory)) + 1


def test_structure_stands_before_the_record_that_names_it(directory: Path) -> None:
    kinds = [
        next(name for name in ("structure", "wire") if name in line) for line in map(orjson.loads, lines_of(directory))
    ]
    place = kinds.index("structure")
    assert kinds.count("structure") == 1
    assert orjson.loads(lines_of(directory)[place + 1])["wire"]["type"] == "credits.priced"


@pytest.mark.parametrize("content", [False, True])
def test_a_dump_loaded_and_dumped_again_is_the_same_bytes(directory: Path, tmp_path: Path, content: bool) -> None:
    lines = lines_of(directory, content=content)
    again = loaded(lines, tmp_path / "again")
    assert lines_of(again, content=content) == lines
    report = checked(again)
    assert report.clean, report.faults
    assert (report.figures["contents absent"] > 0) is not content
    with SqliteStore(directory) as before, SqliteStore(again) as after:
        topic = before.topics()[0]
        assert after.head(topic) == before.head(topic)
        assert after.tree(topic).root() == before.tree(topic).root()
        assert rows_digest(after, topic) == rows_digest(before, topic) == replay_digest(after, topic)
        assert after.counters(topic) == before.counters(topic)


def test_content_that_is_missing_from_a_whole_dump_is_damage(directory: Path, tmp_path: Path) -> None:
    again = loaded(lines_of(directory, content=True), tmp_path / "again")
    sql(again, "DELETE FROM content WHERE number = 9")
    assert "content_missing" in checked(again).errors


def test_erased_content_is_in_no_dump(directory: Path) -> None:
    assert not any(SECRET in line for line in lines_of(directory, content=True))
    assert not any(
        body(SECRET).sha256.encode() in line for line in lines_of(directory, content=True) if b'"content":{' in line
    )


def test_a_loaded_store_is_a_log_of_its_own(directory: Path, tmp_path: Path) -> None:
    again = loaded(lines_of(directory), tmp_path / "again")
    from redkey.stores.opening import open_signing

    with SqliteStore(again) as store:
        signing = open_signing(store)
        signing.sign()
        facts = [decode(record.wire)["type"] for record in store.read(store.topics()[0], 747, 10)]
        assert facts == ["signer.added", "signer.retired"]
    with SqliteStore(directory) as store:
        assert open_signing(store).log.log_id != signing.log.log_id
    report = checked(again)
    assert report.clean, report.faults


def test_several_topics_go_into_one_dump(directory: Path, tmp_path: Path) -> None:
    with Workshop(directory, lane=3) as workshop:
        workshop.furnish()
    lines = lines_of(directory, content=True)
    again = loaded(lines, tmp_path / "again")
    assert lines_of(again, content=True) == lines
    report = checked(again)
    assert report.clean, report.faults
    assert report.figures["topics"] == 2


def test_a_large_body_goes_in_pieces(tmp_path: Path) -> None:
    huge = bytes(range(256)) * 4096
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        with workshop.store.write(workshop.topic) as unit:
            unit.put_content(workshop.topic, [body(huge), body(b""), body(LARGE)])
    lines = lines_of(tmp_path / "data", content=True)
    pieces = [orjson.loads(line)["content"] for line in lines if body(huge).sha256.encode() in line]
    assert len(pieces) == -(-len(huge) // PIECE_BYTES)
    again = loaded(lines, tmp_path / "again")
    assert lines_of(again, content=True) == lines
    with SqliteStore(again) as store:
        for data in (huge, b"", LARGE):
            found = store.content(workshop.topic, body(data).sha256)
            assert found is not None
            assert found.data == data


def test_records_of_several_payers_load(directory: Path, tmp_path: Path) -> None:
    """Like a ledger from a public network: the payer may change from record to record."""
    from redkey.ledger.record import EMPTY_HEAD
    from redkey.ledger.running_hash import chained
    from redkey.services.dump import record_line

    head: object = EMPTY_HEAD
    made: list[Record] = []
    for number, record in enumerate(records(directory)[:40]):
        head, _ = chained(head, record.topic, f"0.0.{2000 + number % 3}", record.timestamp, record.wire)  # type: ignore[arg-type]
        made.append(head)
    lines = [record_line(record, decode(record.wire)) for record in made]
    again = loaded(lines, tmp_path / "again")
    assert lines_of(again) == lines
    assert checked(again).clean


def test_void_records_are_kept_and_told(directory: Path, tmp_path: Path) -> None:
    """A copy of a wire, chained as a public network would order it, changes nothing and stays on the record."""
    from redkey.ledger.running_hash import chained
    from redkey.services.dump import record_line

    last = records(directory)[-1]
    extra, _ = chained(last, last.topic, last.payer, last.timestamp + 1, last.wire)
    store = MemoryStore(SystemClock())
    summary = Loader(store).load([*lines_of(directory), record_line(extra, decode(extra.wire))])
    assert summary.void == 1
    row = store.row(last.topic, "void", f"{extra.sequence:016d}")
    assert row is not None
    assert b"reason" in row.body


# Lines that are wrong.


def _wire_changed(line: bytes) -> bytes:
    return line.replace(b'"priority":"normal"', b'"priority":"high"', 1)


def _wire_invalid(line: bytes) -> bytes:
    return line.replace(b'"type":"task.created"', b'"type":"task.forged"', 1)


def _hash_changed(line: bytes) -> bytes:
    value = orjson.loads(line)
    value["hcs"]["running_hash"] = "A" * 64
    return orjson.dumps(value) + b"\n"


def _time_changed(line: bytes) -> bytes:
    value = orjson.loads(line)
    value["hcs"]["consensus_timestamp"] = "1.000000001"
    return orjson.dumps(value) + b"\n"


def _sequence_changed(line: bytes) -> bytes:
    return line.replace(b'"sequence_number":50', b'"sequence_number":51')


def _payer_changed(line: bytes) -> bytes:
    return line.replace(b'"payer":"1.0.2"', b'"payer":"1.0.3"')


def _payer_malformed(line: bytes) -> bytes:
    return line.replace(b'"payer":"1.0.2"', b'"payer":"me"')


def _topic_changed(line: bytes) -> bytes:
    return line.replace(b'"topic_id":"1.0.1001"', b'"topic_id":"1.0.1002"')


def _cut(line: bytes) -> bytes:
    return line[: len(line) // 2] + b"\n"


def _not_json(line: bytes) -> bytes:
    return b"hello\n"


def _something_else(line: bytes) -> bytes:
    return b'{"answer":42}\n'


def _field_added(line: bytes) -> bytes:
    return line.replace(b'{"hcs":', b'{"extra":1,"hcs":', 1)


def _duplicate_key(line: bytes) -> bytes:
    return line.replace(b'"payer":', b'"payer":"1.0.2","payer":', 1)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_wire_changed, "running_hash_wrong"),
        (_wire_invalid, "unknown_type"),
        (_hash_changed, "running_hash_wrong"),
        (_payer_changed, "running_hash_wrong"),
        (_time_changed, "timestamp_order"),
        (_sequence_changed, "sequence_gap"),
        (_topic_changed, "sequence_gap"),
        (_payer_malformed, "line_malformed"),
        (_cut, "json_syntax"),
        (_not_json, "json_syntax"),
        (_something_else, "line_malformed"),
        (_field_added, "line_malformed"),
        (_duplicate_key, "json_duplicate_key"),
    ],
)
def test_the_first_bad_line_is_named(directory: Path, change: Callable[[bytes], bytes], code: str) -> None:
    lines = lines_of(directory)
    assert change(lines[49]) != lines[49]
    lines[49] = change(lines[49])
    with pytest.raises(DumpRefused) as refused:
        list(read_dump(lines))
    assert "line 50:" in refused.value.message
    assert refused.value.code == code


@pytest.mark.parametrize("change", [lambda lines: lines.pop(99), lambda lines: lines.insert(99, lines[98])])
def test_a_line_left_out_or_repeated_is_named(directory: Path, change: Callable[[list[bytes]], object]) -> None:
    lines = lines_of(directory)
    change(lines)
    with pytest.raises(DumpRefused, match="line 100") as refused:
        list(read_dump(lines))
    assert refused.value.code == "sequence_gap"


def test_swapped_lines_are_named(directory: Path) -> None:
    lines = lines_of(directory)
    lines[100], lines[101] = lines[101], lines[100]
    with pytest.raises(DumpRefused, match="line 101"):
        list(read_dump(lines))


def test_structure_must_have_the_hash_that_names_it(directory: Path) -> None:
    lines = lines_of(directory)
    place = next(index for index, line in enumerate(lines) if b'"structure":' in line)
    lines[place] = lines[place].replace(b'"task.complete":3', b'"task.complete":0')
    with pytest.raises(DumpRefused, match=f"line {place + 1}") as refused:
        list(read_dump(lines))
    assert refused.value.code == "structure_hash"


def test_structure_that_is_missing_stops_the_load_where_it_is_needed(directory: Path) -> None:
    lines = lines_of(directory)
    place = next(index for index, line in enumerate(lines) if b'"structure":' in line)
    del lines[place]
    with pytest.raises(DumpRefused, match=f"line {place + 1}") as refused:
        Loader(MemoryStore(SystemClock())).load(lines)
    assert refused.value.code == "structure_missing"


def test_content_must_have_the_hash_that_names_it(directory: Path, tmp_path: Path) -> None:
    lines = lines_of(directory, content=True)
    value = orjson.loads(lines[-1])
    value["sha256"] = "0" * 64
    with pytest.raises(DumpRefused) as refused:
        list(read_dump([*lines[:-1], orjson.dumps(value)]))
    assert refused.value.code == "content_hash"


def test_pieces_of_content_must_follow_each_other(directory: Path, tmp_path: Path) -> None:
    huge = bytes(700_000)
    with SqliteStore(directory) as store, store.write(store.topics()[0]) as unit:
        unit.put_content(store.topics()[0], [body(huge)])
    lines = lines_of(directory, content=True)
    places = [index for index, line in enumerate(lines) if body(huge).sha256.encode() in line]
    changes = (
        [*lines[: places[1]], *lines[places[2] :]],
        [*lines[: places[0]], *lines[places[1] :]],
        lines[: places[-1]],
        [*lines[: places[-1]], lines[places[-1]].replace(b"AAAA", b"AAAB", 1)],
    )
    for number, change in enumerate(changes):
        with SqliteStore(tmp_path / f"again-{number}") as store:
            with pytest.raises(DumpRefused) as refused:
                Loader(store).load(change)
            assert refused.value.code in ("content_gap", "content_hash")
            assert not list((store.directory / "content" / "incoming").iterdir())


def test_a_store_that_holds_something_is_not_loaded_into(directory: Path) -> None:
    with SqliteStore(directory) as store:
        with pytest.raises(DumpRefused) as refused:
            Loader(store)
        assert refused.value.code == "store_not_empty"


def test_a_damaged_ledger_is_not_dumped(directory: Path) -> None:
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 70)
    with pytest.raises(DumpRefused, match="record 70 ") as refused:
        lines_of(directory)
    assert refused.value.code == "source_damaged"


def test_batches_of_any_size_give_the_same_store(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(directory, content=True)
    monkeypatch.setattr(loading, "_BATCH", 7)
    monkeypatch.setattr(loading, "_BODIES_BYTES", 500)
    again = loaded(lines, tmp_path / "again")
    assert lines_of(again, content=True) == lines
    assert checked(again).clean


def test_reading_is_streaming(directory: Path) -> None:
    lines = iter(lines_of(directory))
    items = read_dump(lines)
    first = next(items)
    assert isinstance(first, Recorded)
    assert next(lines)
