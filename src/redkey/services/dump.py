"""Dumps: a ledger as JSON lines, written from a store and read back with every line checked.

    {"structure": {...}, "sha256": ..., "topic_id": ...}                before the first record that names it
    {"hcs": {...}, "payer": ..., "wire": {...}}                         each record, in order
    {"content": {"data", "offset", "total"}, "sha256": ..., ...}        bodies a piece at a time, when asked for

Lines are canonical JSON, so the same ledger gives the same bytes. A reader believes none of them: sequence, time and
running hash must continue the line before, wires must be valid and canonical, structure and content must have the
hashes that name them. Putting them into a store is `load`, folding them without one is `replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from redkey.errors import DumpRefused, JsonRefused, ProofRefused, StoreError, UpgradeNeeded, WireRefused
from redkey.ledger.chain import verify_records
from redkey.ledger.merkle import Edge
from redkey.ledger.note import decode_base64, encode_base64
from redkey.ledger.ports import Content
from redkey.ledger.record import EMPTY_HEAD, MESSAGE_LIMIT, Head, Record, hedera_time, parse_hedera_time
from redkey.ledger.running_hash import chained
from redkey.ledger.tail import head_of, records_after
from redkey.readmodel.structure import structure_ref
from redkey.services.fsck.evidence import Evidence
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.validate import read_wire

LINE_LIMIT = 64 * 1024 * 1024
PIECE_BYTES = 192 * 1024


class Recorded(msgspec.Struct, frozen=True):
    """A record of a dump, with its wire decoded; `line` is its line number."""

    line: int
    record: Record
    wire: AnyWire


class Structure(msgspec.Struct, frozen=True):
    """Structure in a dump, under its own hash."""

    line: int
    topic: str
    content: Content


class Piece(msgspec.Struct, frozen=True):
    """Some bytes of a body; the pieces of a body follow each other, from its first byte to its last."""

    line: int
    topic: str
    sha256: str
    offset: int
    total: int
    data: bytes


Item = Recorded | Structure | Piece


# Writing.


def dump(evidence: Evidence, topics: Iterable[str], *, content: bool = False) -> Iterator[bytes]:
    """Yield the lines of a dump of these topics; DumpRefused at the first damaged record."""
    for topic in topics:
        yield from _records(evidence, topic)
        if content:
            yield from _bodies(evidence, topic)


def _records(evidence: Evidence, topic: str) -> Iterator[bytes]:
    head, edge = EMPTY_HEAD, Edge()
    told: set[str] = set()
    for batch in records_after(evidence, topic, 0):
        head, damages = verify_records(head, edge, batch)
        if damages:
            damaged = f"record {damages[0].sequence} of topic {topic} is damaged: {damages[0].message}"
            raise DumpRefused(f"{damaged}; run redkey fsck", code="source_damaged")
        for record in batch:
            wire = _wire_of(record)
            named = _structure_of(record)
            if named is not None and named not in told:
                told.add(named)
                yield _structure_line(evidence, topic, named, record.sequence)
            yield record_line(record, wire)


def record_line(record: Record, wire: dict[str, Any]) -> bytes:
    """Return the line of one record."""
    hcs = {
        "topic_id": record.topic,
        "sequence_number": record.sequence,
        "consensus_timestamp": hedera_time(record.timestamp),
        "running_hash": encode_base64(record.running_hash),
    }
    return canonical({"wire": wire, "hcs": hcs, "payer": record.payer}) + b"\n"


def _wire_of(record: Record) -> dict[str, Any]:
    try:
        wire: dict[str, Any] = decode(record.wire)
        sound = canonical(wire) == record.wire
    except JsonRefused:
        sound = False
    if not sound:
        text = f"the wire of record {record.sequence} is not canonical JSON, a dump would change it; run redkey fsck"
        raise DumpRefused(text, code="source_damaged")
    return wire


def _structure_of(record: Record) -> str | None:
    """Return the hash of the structure that a record names; empty if it has no valid wire."""
    try:
        return structure_ref(wire_of(record.wire).payload)
    except (UpgradeNeeded, msgspec.ValidationError):
        return None


def _structure_line(evidence: Evidence, topic: str, named: str, sequence: int) -> bytes:
    found = evidence.content(topic, named)
    if found is None:
        raise DumpRefused(f"the structure that record {sequence} names is missing", code="structure_missing")
    value = decode(found.data, size_limit=LINE_LIMIT)
    line = canonical({"structure": value, "sha256": named, "topic_id": topic}) + b"\n"
    if canonical(value) != found.data:
        raise DumpRefused(f"the structure that record {sequence} names is not canonical JSON", code="source_damaged")
    return line


def _bodies(evidence: Evidence, topic: str) -> Iterator[bytes]:
    for body in evidence.bodies(topic):
        if body.erased or body.pinned:
            continue
        offset = 0
        try:
            for piece in _pieces(evidence.content_chunks(topic, body.sha256)):
                content = {"data": encode_base64(piece), "offset": offset, "total": body.size}
                yield canonical({"content": content, "sha256": body.sha256, "topic_id": topic}) + b"\n"
                offset += len(piece)
        except StoreError as error:
            raise DumpRefused(f"{error.message}; run redkey fsck", code="source_damaged") from error


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split the bytes into pieces of one size, whatever the size of the chunks; an empty body gives one empty piece."""
    kept, some = bytearray(), False
    for chunk in chunks:
        kept += chunk
        while len(kept) >= PIECE_BYTES:
            some = True
            yield bytes(kept[:PIECE_BYTES])
            del kept[:PIECE_BYTES]
    if kept or not some:
        yield bytes(kept)


# Reading.


class _Hcs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic_id: str
    sequence_number: int
    consensus_timestamp: str
    running_hash: str


class _RecordLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wire: dict[str, Any]
    hcs: _Hcs
    payer: str


class _BytesLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    topic_id: str


class _StructureLine(_BytesLine, frozen=True, kw_only=True):
    structure: Any


class _Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: str
    offset: int
    total: int


class _ContentLine(_BytesLine, frozen=True, kw_only=True):
    content: _Span


_SHAPES: dict[str, type[msgspec.Struct]] = {
    "wire": _RecordLine,
    "structure": _StructureLine,
    "content": _ContentLine,
}


def read_dump(lines: Iterable[bytes]) -> Iterator[Item]:
    """Yield what the lines of a dump hold, each checked; DumpRefused names the first wrong line."""
    heads: dict[str, Head] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _item(number, line, heads)
        except (JsonRefused, WireRefused, ProofRefused, ValueError, msgspec.ValidationError) as cause:
            code = getattr(cause, "code", "line_malformed")
            raise DumpRefused(f"line {number}: {cause}", code=code) from cause
        except DumpRefused as refused:
            raise DumpRefused(f"line {number}: {refused.message}", code=refused.code) from refused


def _item(number: int, line: bytes, heads: dict[str, Head]) -> Item:
    if len(line) > LINE_LIMIT:
        raise DumpRefused(f"the line has more than {LINE_LIMIT:,} bytes", code="line_too_long")
    value = decode(line.rstrip(b"\r\n"), size_limit=LINE_LIMIT)
    shapes = [shape for name, shape in _SHAPES.items() if isinstance(value, dict) and name in value]
    if len(shapes) != 1:
        raise DumpRefused("not a line of a dump: it has no wire, structure or content", code="line_malformed")
    found = msgspec.convert(value, shapes[0])
    if isinstance(found, _RecordLine):
        return _recorded(number, found, heads)
    if isinstance(found, _StructureLine):
        data = canonical(found.structure)
        _check_hash(data, found.sha256, "structure")
        return Structure(number, found.topic_id, Content(found.sha256, data, pinned=True))
    if isinstance(found, _ContentLine):
        return _piece(number, found)
    raise DumpRefused("not a line of a dump", code="line_malformed")


def _recorded(number: int, line: _RecordLine, heads: dict[str, Head]) -> Recorded:
    hcs = line.hcs
    head = heads.get(hcs.topic_id, EMPTY_HEAD)
    if hcs.sequence_number != head.sequence + 1:
        text = f"the sequence is {hcs.sequence_number}, expected {head.sequence + 1} of topic {hcs.topic_id}"
        raise DumpRefused(text, code="sequence_gap")
    timestamp = parse_hedera_time(hcs.consensus_timestamp)
    if not head.timestamp < timestamp < 2**63:
        raise DumpRefused("its time is not after that of the record before", code="timestamp_order")
    message = canonical(line.wire)
    if len(message) > MESSAGE_LIMIT:
        raise DumpRefused(f"the wire has {len(message)} bytes; {MESSAGE_LIMIT} are allowed", code="message_length")
    wire = read_wire(message)
    record, _ = chained(head, hcs.topic_id, line.payer, timestamp, message)
    if record.running_hash != decode_base64(hcs.running_hash):
        raise DumpRefused("its running hash does not match the record", code="running_hash_wrong")
    heads[hcs.topic_id] = head_of(record)
    return Recorded(number, record, wire)


def _piece(number: int, line: _ContentLine) -> Piece:
    span, data = line.content, decode_base64(line.content.data)
    if not 0 <= span.offset <= span.offset + len(data) <= span.total:
        raise DumpRefused("the piece of content is outside of its body", code="content_malformed")
    if span.offset == 0 and len(data) == span.total:
        _check_hash(data, line.sha256, "content")
    return Piece(number, line.topic_id, line.sha256, span.offset, span.total, data)


def _check_hash(data: bytes, named: str, what: str) -> None:
    if sha256(data).hexdigest() != named:
        raise DumpRefused(f"the {what} does not have the hash that names it", code=f"{what}_hash")
