"""What a server keeps of the messages of a network: how far it has read, and what became of each message.

A message that counts, or that is void in the state that it meets, is a record of the local topic. Any other (bytes that
are not a wire, a payer that may not write it, a copy) leaves no record, only its row with the reason.
"""

from __future__ import annotations

from typing import final

import msgspec

from redkey.ledger.ports import Reader, Row, Unit
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.readmodel.rows import NETWORK

_RECORDED, _LEFT_OUT = "recorded", "left_out"
# The fact of a local topic: the last message of the network that it holds.
PROJECTED = "projected/"
# The setting that holds the transaction id by which the topic of a new workspace is created.
BEGINNING = "order_begin/"


class MessageRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of the network: its place there, and the place of its record here; 0 if it left none."""

    sequence: int
    timestamp: int
    payer: str
    wire_id: str = ""
    recorded_at: int = 0
    # Why it changes nothing; empty if it does.
    void: str = ""


@final
class ProjectMessages(msgspec.Struct, frozen=True):
    """A command of the server itself: record what follows from the next messages of the network."""

    messages: tuple[Record, ...]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(MessageRow).decode
_decode_head = msgspec.json.Decoder(Head).decode


def read_cursor(reader: Reader, topic: str) -> Head:
    """Return the last message of the network that the local topic holds."""
    text = reader.setting(PROJECTED + topic)
    return _decode_head(text) if text else EMPTY_HEAD


def put_cursor(unit: Unit, topic: str, head: Head) -> None:
    """Store up to which message the local topic holds what follows."""
    unit.put_fact(topic, PROJECTED + topic, _encode(head).decode())


def put_message(unit: Unit, topic: str, message: Record, wire_id: str, recorded_at: int, void: str) -> None:
    """Store what became of a message."""
    row = MessageRow(message.sequence, message.timestamp, message.payer, wire_id, recorded_at, void)
    listed, position = (_RECORDED, recorded_at) if recorded_at else (_LEFT_OUT, message.sequence)
    unit.put_rows(topic, [Row(NETWORK, _key(message.sequence), _encode(row), listed, position)])


def message_at(reader: Reader, topic: str, sequence: int) -> MessageRow | None:
    """Return what became of the message at a sequence of the network; None if it was not read yet."""
    row = reader.row(topic, NETWORK, _key(sequence))
    return None if row is None else _decode(row.body)


def message_of(reader: Reader, topic: str, recorded_at: int) -> MessageRow | None:
    """Return the message of the record at this place of the local topic; None if that record is a consequence of
    others.
    """
    found = message_after(reader, topic, recorded_at)
    return found if found is not None and found.recorded_at == recorded_at else None


def message_after(reader: Reader, topic: str, recorded_at: int) -> MessageRow | None:
    """Return the first message with a record at this place of the local topic or after it."""
    rows = reader.rows(topic, NETWORK, _RECORDED, (recorded_at, ""), 1)
    return _decode(rows[0].body) if rows else None


def left_out(reader: Reader, topic: str, after: int = 0, limit: int = 100) -> list[MessageRow]:
    """Return messages that left no record, in order above a sequence of the network."""
    return [_decode(row.body) for row in reader.rows(topic, NETWORK, _LEFT_OUT, (after + 1, ""), limit)]


def _key(sequence: int) -> str:
    return f"{sequence:020d}"
