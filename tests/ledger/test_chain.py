"""Every kind of damage to a run of records is named, and a sound run is verified at speed."""

from __future__ import annotations

import os
import random

import msgspec
import pytest

from redkey.ledger.chain import Damage, verify_records
from redkey.ledger.merkle import Edge
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import chained
from tests.harness.small_log import SmallLog

COUNT = 40


@pytest.fixture(scope="module")
def log() -> SmallLog:
    return SmallLog(COUNT)


def found(records: list[Record]) -> list[tuple[int, str]]:
    _, damages = verify_records(EMPTY_HEAD, Edge(), records)
    return [(damage.sequence, damage.code) for damage in damages]


def changed(log: SmallLog, place: int, **fields: object) -> list[Record]:
    records = list(log.records)
    records[place - 1] = msgspec.structs.replace(records[place - 1], **fields)
    return records


def test_a_sound_run_gives_its_head_and_the_root_of_its_tree(log: SmallLog) -> None:
    edge = Edge()
    head, damages = verify_records(EMPTY_HEAD, edge, log.records)
    assert (head, damages) == (log.head, [])
    assert (edge.size, edge.root()) == (COUNT, log.tree.root())


def test_a_run_can_be_verified_in_parts(log: SmallLog) -> None:
    rng, edge, head = random.Random(3), Edge(), EMPTY_HEAD
    while head.sequence < COUNT:
        step = rng.randrange(0, 9)
        head, damages = verify_records(head, edge, log.records[head.sequence : head.sequence + step])
        assert damages == []
        assert edge.root() == log.tree.root(head.sequence)


def test_head_and_edge_must_be_of_the_same_place(log: SmallLog) -> None:
    with pytest.raises(ValueError, match="the edge is of 0 records, the head of 40"):
        verify_records(log.head, Edge(), [])


def test_a_changed_message_names_that_record_alone(log: SmallLog) -> None:
    assert found(changed(log, 7, wire=b"{}")) == [(7, "running_hash_wrong")]


def test_a_changed_running_hash_names_that_record_alone(log: SmallLog) -> None:
    assert found(changed(log, 7, running_hash=bytes(48))) == [(7, "running_hash_wrong")]
    assert found(changed(log, COUNT, running_hash=bytes(48))) == [(COUNT, "running_hash_wrong")]


@pytest.mark.parametrize(
    "fields",
    [{"payer": "0.0.2"}, {"topic": "1.0.1002"}, {"timestamp": 1_778_177_700_006_000_019}],
)
def test_a_changed_payer_topic_or_time_names_that_record_alone(log: SmallLog, fields: dict[str, object]) -> None:
    assert found(changed(log, 7, **fields)) == [(7, "running_hash_wrong")]


def test_a_time_that_goes_back_is_named(log: SmallLog) -> None:
    earlier = log.records[5].timestamp
    assert found(changed(log, 7, timestamp=earlier)) == [(7, "timestamp_order"), (7, "running_hash_wrong")]


def test_a_time_or_sequence_that_was_wrong_when_it_was_hashed_is_named() -> None:
    """The running hash is right, because whoever made the record hashed what should not be."""
    log = SmallLog(3)
    for timestamp in (log.head.timestamp, log.head.timestamp - 1):
        record, _ = chained(log.head, "1.0.1001", "1.0.2", timestamp, b"{}")
        assert found([*log.records, record]) == [(4, "timestamp_order")]
    ahead = msgspec.structs.replace(log.head, sequence=5)
    record, _ = chained(ahead, "1.0.1001", "1.0.2", log.head.timestamp + 1, b"{}")
    assert found([*log.records, record]) == [(6, "sequence_gap")]


def test_a_sequence_that_is_written_otherwise_is_named(log: SmallLog) -> None:
    assert found(changed(log, 7, sequence=9))[:2] == [(9, "sequence_gap"), (9, "running_hash_wrong")]


@pytest.mark.parametrize(
    "fields", [{"payer": "nobody"}, {"payer": ""}, {"topic": "1.0"}, {"timestamp": 2**100}, {"payer": f"0.0.{2**63}"}]
)
def test_a_record_that_cannot_be_hashed_is_named_not_raised(log: SmallLog, fields: dict[str, object]) -> None:
    assert (7, "record_unreadable") in found(changed(log, 7, **fields))


@pytest.mark.parametrize("wire", [b"", bytes(1025)])
def test_a_message_of_a_length_that_hcs_forbids_is_named(wire: bytes) -> None:
    log = SmallLog(3)
    log.append(wire)
    assert found(log.records) == [(4, "message_length")]


def test_deleted_inserted_and_swapped_records_are_named(log: SmallLog) -> None:
    deleted = [*log.records[:6], *log.records[7:]]
    assert found(deleted)[0] == (8, "sequence_gap")
    inserted = [*log.records[:6], log.records[2], *log.records[6:]]
    assert (3, "sequence_gap") in found(inserted)
    swapped = [*log.records[:6], log.records[7], log.records[6], *log.records[8:]]
    assert {sequence for sequence, _ in found(swapped)} >= {7, 8}


def test_every_flipped_bit_of_a_record_is_named(log: SmallLog) -> None:
    bits = range(8) if os.environ.get("REDKEY_TEST_LONG") else (0,)
    for sequence in (1, 7, COUNT):
        record = log.records[sequence - 1]
        for field in ("wire", "running_hash"):
            data = getattr(record, field)
            for position in range(len(data)):
                for bit in bits:
                    flipped = bytearray(data)
                    flipped[position] ^= 1 << bit
                    assert found(changed(log, sequence, **{field: bytes(flipped)})) == [
                        (sequence, "running_hash_wrong")
                    ]


def test_two_damaged_records_in_a_row_are_both_named(log: SmallLog) -> None:
    records = changed(log, 7, wire=b"{}")
    records[7] = msgspec.structs.replace(records[7], wire=b"[]")
    assert found(records) == [(7, "running_hash_wrong"), (8, "running_hash_wrong")]


def test_a_fork_verifies_alone_and_has_another_root(log: SmallLog) -> None:
    fork = SmallLog(COUNT, seed="fork")
    edge = Edge()
    head, damages = verify_records(EMPTY_HEAD, edge, fork.records)
    assert damages == []
    assert edge.root() != log.tree.root()
    assert isinstance(head, Head)
    mixed = [*log.records[:20], *fork.records[20:]]
    assert found(mixed) == [(21, "running_hash_wrong")]


def test_damage_says_what_is_wrong(log: SmallLog) -> None:
    _, damages = verify_records(EMPTY_HEAD, Edge(), log.records[1:])
    assert damages[0] == Damage(2, "sequence_gap", "the sequence is 2, expected 1")
