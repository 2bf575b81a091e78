"""Rows of a topic as mirror nodes show them over REST, written from records and checked as a stream.

A row's running hash covers the row before it, the payer, the topic, the time, the sequence and the message;
chunk information is not covered. Rows may come in any order, twice, or with gaps: each is verified as soon as the row
before it is known. The last `WINDOW` rows of a topic are remembered, so memory is bounded for files of any size.
`redkey.cli.hcs` opens the files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha384
from typing import Any, Literal

import msgspec

from redkey.errors import ProofRefused
from redkey.ledger.note import decode_base64, encode_base64
from redkey.ledger.record import Record, entity, hedera_time, parse_hedera_time
from redkey.ledger.running_hash import GENESIS, VERSION, preimage

WINDOW = 100_000


class MirrorRow(msgspec.Struct, frozen=True):
    """One message of a topic; `payer` and `version` are None where the answer had none."""

    topic: str
    sequence: int
    timestamp: int
    payer: str | None
    message: bytes
    running_hash: bytes
    version: int | None
    chunked: bool = False
    place: str = ""


class Judged(msgspec.Struct, frozen=True):
    """The result for one row."""

    row: MirrorRow
    status: Literal["verified", "bad", "unchecked", "repeated"]
    code: str = ""
    message: str = ""


def mirror_row(record: Record) -> dict[str, Any]:
    """Write a record as a mirror node would show it."""
    return {
        "chunk_info": None,
        "consensus_timestamp": hedera_time(record.timestamp),
        "message": encode_base64(record.wire),
        "payer_account_id": record.payer,
        "running_hash": encode_base64(record.running_hash),
        "running_hash_version": VERSION,
        "sequence_number": record.sequence,
        "topic_id": record.topic,
    }


def mirror_page(records: Sequence[Record], *, full: bool) -> dict[str, Any]:
    """Write a page of a mirror node; a full page links to the next one."""
    link = None
    if full and records:
        last = records[-1]
        link = f"/api/v1/topics/{last.topic}/messages?timestamp=gt:{hedera_time(last.timestamp)}"
    return {"links": {"next": link}, "messages": [mirror_row(record) for record in records]}


def rows_in(document: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of one JSON document with their places: a page, a list of pages or rows, or one row."""
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from rows_in(item, f"{place}[{index}]") if _is_page(item) else [(f"{place}[{index}]", item)]
        return
    if isinstance(document, dict) and "_status" in document:
        raise ProofRefused(f"{place} is a mirror node's error answer, not messages", code="mirror_error")
    if not _is_page(document):
        yield place, document
        return
    if not isinstance(document["messages"], list):
        raise ProofRefused(f"{place}: `messages` is not a list", code="mirror_malformed")
    for index, item in enumerate(document["messages"]):
        yield f"{place}[{index}]", item


def parse_row(value: Any, place: str = "") -> MirrorRow:
    """Parse a row from JSON; raise ProofRefused if it is not one."""
    try:
        sequence, version, payer = (
            value["sequence_number"],
            value.get("running_hash_version"),
            value.get("payer_account_id"),
        )
        if type(sequence) is not int or not 0 < sequence < 2**63:
            raise ValueError("sequence_number is not a positive integer")
        if version is not None and type(version) is not int:
            raise ValueError("running_hash_version is not an integer")
        entity(value["topic_id"])
        if payer is not None:
            entity(payer)
        row = MirrorRow(
            topic=value["topic_id"],
            sequence=sequence,
            timestamp=parse_hedera_time(value["consensus_timestamp"]),
            payer=payer,
            message=_base64(value, "message"),
            running_hash=_base64(value, "running_hash"),
            version=version,
            chunked=value.get("chunk_info") is not None,
            place=place,
        )
    except KeyError as cause:
        raise ProofRefused(f"the row has no {cause.args[0]}", code="row_malformed") from cause
    except (TypeError, AttributeError, ValueError) as cause:
        raise ProofRefused(f"not a row of a mirror node: {cause}", code="row_malformed") from cause
    if len(row.running_hash) != len(GENESIS):
        raise ProofRefused(f"a running hash of {len(row.running_hash)} bytes, not 48", code="row_malformed")
    return row


class RowChecker:
    """Verifies rows as they come; a row waits until the row before it is known."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        # By (topic, sequence): rows that were seen, and rows that wait for the one before them.
        self._seen: dict[tuple[str, int], MirrorRow] = {}
        self._waiting: dict[tuple[str, int], MirrorRow] = {}

    def add(self, row: MirrorRow) -> Iterator[Judged]:
        """Add one row; return the results for it and for the row that waited for it."""
        place = (row.topic, row.sequence)
        before = self._seen.get(place)
        if before is not None:
            yield _compared(before, row)
            return
        # Remember only what the next row needs, not the message.
        self._seen[place] = msgspec.structs.replace(row, message=sha384(row.message).digest())
        if reason := _uncheckable(row):
            yield reason
        elif row.sequence == 1:
            yield _judge(row, GENESIS, -1)
        elif previous := self._seen.get((row.topic, row.sequence - 1)):
            yield _judge(row, previous.running_hash, previous.timestamp)
        else:
            self._waiting[place] = row
        follower = self._waiting.pop((row.topic, row.sequence + 1), None)
        if follower is not None:
            yield _judge(follower, row.running_hash, row.timestamp)
        yield from self._forget()

    def finish(self) -> Iterator[Judged]:
        """Return the results for rows whose predecessor never came."""
        for row in self._waiting.values():
            yield _alone(row)
        self._waiting.clear()

    def _forget(self) -> Iterator[Judged]:
        if len(self._seen) > self._window:
            del self._seen[next(iter(self._seen))]
        if len(self._waiting) > self._window:
            yield _alone(self._waiting.pop(next(iter(self._waiting))))


def check_rows(rows: Iterable[MirrorRow]) -> list[Judged]:
    """Verify all rows; yield the results as soon as they are known."""
    checker = RowChecker()
    judged = [one for row in rows for one in checker.add(row)]
    return [*judged, *checker.finish()]


def _judge(row: MirrorRow, previous: bytes, after: int) -> Judged:
    try:
        leaf = preimage(previous, row.payer or "", row.topic, row.timestamp, row.sequence, row.message)
    except (ValueError, struct.error) as cause:
        return Judged(row, "bad", "row_malformed", f"the row cannot be hashed: {cause}")
    if sha384(leaf).digest() != row.running_hash:
        return Judged(row, "bad", "running_hash_wrong", "its running hash is not the hash of what it says")
    if row.timestamp <= after:
        return Judged(row, "bad", "timestamp_order", f"its time is not after that of row {row.sequence - 1}")
    return Judged(row, "verified")


def _compared(before: MirrorRow, row: MirrorRow) -> Judged:
    again = msgspec.structs.replace(row, message=sha384(row.message).digest(), place=before.place)
    if again == before:
        return Judged(row, "repeated")
    return Judged(
        row, "bad", "row_contradicts", f"it says something else than the row of the same place at {before.place}"
    )


def _uncheckable(row: MirrorRow) -> Judged | None:
    if row.version != VERSION:
        stated = "no version" if row.version is None else f"version {row.version}"
        text = f"its running hash has {stated}; only version {VERSION} can be checked"
        return Judged(row, "unchecked", "version_unsupported", text)
    if row.payer is None:
        return Judged(row, "unchecked", "payer_missing", "it names no payer, which the running hash covers")
    return None


def _alone(row: MirrorRow) -> Judged:
    return Judged(row, "unchecked", "no_predecessor", f"row {row.sequence - 1} is not there to check it against")


def _is_page(value: Any) -> bool:
    return isinstance(value, dict) and "messages" in value


def _base64(value: Any, field: str) -> bytes:
    try:
        return decode_base64(value[field])
    except ProofRefused as cause:
        raise ValueError(f"{field} is not base64") from cause
