"""Rows of mirror nodes: those of public networks verify, in any order, and every damage is named."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ProofRefused
from redkey.ledger.mirror import MirrorRow, RowChecker, check_rows, mirror_page, mirror_row, parse_row, rows_in
from redkey.ledger.note import encode_base64
from tests.harness.small_log import SmallLog

VECTORS = json.loads((Path(__file__).parent / "vectors" / "hcs_running_hash.json").read_text())["rows"]


def as_row(vector: dict[str, Any]) -> dict[str, Any]:
    return {
        "chunk_info": None,
        "consensus_timestamp": vector["ts"],
        "message": vector["message_b64"],
        "payer_account_id": vector["payer"],
        "running_hash": encode_base64(bytes.fromhex(vector["running_hash"])),
        "running_hash_version": 3,
        "sequence_number": vector["seq"],
        "topic_id": vector["topic"],
    }


PUBLIC = [as_row(vector) for vector in VECTORS]


def judged(rows: list[dict[str, Any]]) -> Counter[str]:
    found = check_rows([parse_row(row, f"[{index}]") for index, row in enumerate(rows)])
    return Counter(one.code or one.status for one in found)


def test_every_row_of_public_networks_that_can_be_checked_verifies() -> None:
    assert judged(PUBLIC) == {"verified": 14, "no_predecessor": 1}


def test_the_order_of_rows_does_not_matter() -> None:
    rng = random.Random(5)
    for _ in range(30):
        rows = rng.sample(PUBLIC, len(PUBLIC))
        assert judged(rows) == {"verified": 14, "no_predecessor": 1}
    assert judged(PUBLIC[::-1]) == {"verified": 14, "no_predecessor": 1}


def test_repeated_rows_are_counted_once_and_contradictions_are_bad() -> None:
    assert judged([*PUBLIC, *PUBLIC]) == {"verified": 14, "no_predecessor": 1, "repeated": 15}
    other = {**PUBLIC[1], "message": "b3RoZXI="}
    assert judged([*PUBLIC[:3], other]) == {"verified": 3, "row_contradicts": 1}


def test_a_gap_leaves_the_row_after_it_unchecked() -> None:
    mainnet = [row for row in PUBLIC if row["topic_id"] == "0.0.120438"]
    assert judged(mainnet[:3] + mainnet[5:]) == {"verified": 7, "no_predecessor": 2}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("message", "b3RoZXI="),
        ("message", ""),
        ("payer_account_id", "0.0.3"),
        ("consensus_timestamp", "1683553060.092158004"),
        ("topic_id", "0.0.4603900"),
    ],
)
def test_a_changed_field_that_is_hashed_makes_the_row_bad(field: str, value: str) -> None:
    rows = [dict(row) for row in PUBLIC[:3]]
    if field == "topic_id":
        for row in rows:
            row[field] = "0.0.4603901"
        assert judged(rows) == {"running_hash_wrong": 3}
        return
    rows[1][field] = value
    assert judged(rows) == {"verified": 2, "running_hash_wrong": 1}


def test_every_flipped_bit_of_message_and_hash_is_seen() -> None:
    row = parse_row(PUBLIC[1])
    first = parse_row(PUBLIC[0])
    for field in ("message", "running_hash"):
        data = getattr(row, field)
        for bit in range(len(data) * 8):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            changed = MirrorRow(
                **{**{name: getattr(row, name) for name in row.__struct_fields__}, field: bytes(flipped)}
            )
            assert check_rows([first, changed])[1].code == "running_hash_wrong"


def test_what_the_hash_covers_and_a_row_lacks_leaves_it_unchecked() -> None:
    rows = [dict(row) for row in PUBLIC[:3]]
    del rows[1]["payer_account_id"]
    rows[2]["payer_account_id"] = None
    assert judged(rows) == {"verified": 1, "payer_missing": 2}


@pytest.mark.parametrize("version", [1, 2, 4, None])
def test_other_versions_are_unchecked_and_said(version: int | None) -> None:
    rows = [dict(row) for row in PUBLIC[:3]]
    rows[1]["running_hash_version"] = version
    found = check_rows([parse_row(row) for row in rows])
    assert [one.status for one in found] == ["verified", "unchecked", "verified"]
    assert found[1].code == "version_unsupported"
    assert "only version 3" in found[1].message


def test_chunk_information_is_not_hashed_and_does_not_matter() -> None:
    rows = [dict(row) for row in PUBLIC[:3]]
    rows[1]["chunk_info"] = {"number": 1, "total": 2, "initial_transaction_id": {"account_id": "0.0.2"}}
    assert judged(rows) == {"verified": 3}
    assert parse_row(rows[1]).chunked


def test_a_time_that_does_not_rise_is_bad_even_when_the_hash_is_right() -> None:
    from hashlib import sha384

    from redkey.ledger.running_hash import preimage

    first = parse_row(PUBLIC[0])
    leaf = preimage(first.running_hash, "0.0.2", first.topic, first.timestamp, 2, b"x")
    second = MirrorRow(first.topic, 2, first.timestamp, "0.0.2", b"x", sha384(leaf).digest(), 3)
    assert [one.code for one in check_rows([first, second])] == ["", "timestamp_order"]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("sequence_number", 0, "sequence_number"),
        ("sequence_number", "1", "sequence_number"),
        ("sequence_number", True, "sequence_number"),
        ("sequence_number", 2**63, "sequence_number"),
        ("consensus_timestamp", "1683553060", "seconds.nnnnnnnnn"),
        ("consensus_timestamp", 1683553060.1, "mirror node"),
        ("message", "not base64!", "message is not base64"),
        ("message", "TWVzc2FnZSAx=", "message is not base64"),
        ("message", None, "mirror node"),
        ("running_hash", "TWVz", "3 bytes, not 48"),
        ("running_hash_version", "3", "running_hash_version"),
        ("topic_id", "0.0", "mirror node"),
        ("topic_id", "0.0.x", "shard.realm.num"),
        ("payer_account_id", "me", "mirror node"),
    ],
)
def test_a_row_that_is_not_one_is_refused_with_the_field(field: str, value: object, told: str) -> None:
    with pytest.raises(ProofRefused, match=told) as refused:
        parse_row({**PUBLIC[0], field: value})
    assert refused.value.code == "row_malformed"


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, {"sequence_number": 1}])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ProofRefused):
        parse_row(value)


def test_pages_lists_and_rows_are_all_read() -> None:
    page = {"links": {"next": None}, "messages": PUBLIC[:2]}
    assert [place for place, _ in rows_in(page, "f")] == ["f[0]", "f[1]"]
    assert [place for place, _ in rows_in([page, page], "f")] == ["f[0][0]", "f[0][1]", "f[1][0]", "f[1][1]"]
    assert [place for place, _ in rows_in(PUBLIC[:2], "f")] == ["f[0]", "f[1]"]
    assert [place for place, _ in rows_in(PUBLIC[0], "f")] == ["f"]
    assert list(rows_in({"messages": []}, "f")) == []


def test_an_error_answer_is_told_apart_from_rows() -> None:
    with pytest.raises(ProofRefused) as refused:
        list(rows_in({"_status": {"messages": [{"message": "Not found"}]}}, "f"))
    assert refused.value.code == "mirror_error"
    with pytest.raises(ProofRefused) as refused:
        list(rows_in({"messages": {}}, "f"))
    assert refused.value.code == "mirror_malformed"


def test_memory_is_bounded_by_the_window() -> None:
    log = SmallLog(60)
    rows = [parse_row(mirror_row(record)) for record in log.records]
    checker = RowChecker(window=10)
    found = [one for row in rows for one in checker.add(row)]
    assert [one.status for one in found] == ["verified"] * 60
    assert len(checker._seen) == 10
    backwards = RowChecker(window=10)
    found = [one for row in rows[::-1] for one in backwards.add(row)]
    assert Counter(one.status for one in found) == {"verified": 60}
    scattered = RowChecker(window=10)
    found = [one for row in rows[1::2] for one in scattered.add(row)]
    assert len(scattered._waiting) == 10
    assert Counter(one.code for one in [*found, *scattered.finish()]) == {"no_predecessor": 30}


def test_records_written_as_pages_verify_and_link_to_what_follows() -> None:
    log = SmallLog(5)
    full, last = mirror_page(log.records[:3], full=True), mirror_page(log.records[3:], full=False)
    assert full["links"]["next"] == "/api/v1/topics/1.0.1001/messages?timestamp=gt:1778177700.002000006"
    assert last["links"]["next"] is None
    assert mirror_page([], full=True) == {"links": {"next": None}, "messages": []}
    rows = [row for page in (full, last) for _, row in rows_in(json.loads(json.dumps(page)), "f")]
    assert judged(rows) == {"verified": 5}
