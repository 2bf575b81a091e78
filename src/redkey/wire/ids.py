"""Ids and stream ids: how they are written, created and parsed.

An id is a prefix and a ULID. Ids are created from bytes of the caller (time and randomness come through ports), or from
a hash if the same cause must always have the same id.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Two characters at a time: half the steps for the same text.
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
# The character of each byte, by its last five bits.
_CHARACTERS = (_ALPHABET * 8).encode()


def ulid(milliseconds: int, randomness: bytes) -> str:
    """Return the ULID of a time and 10 random bytes."""
    return moment(milliseconds) + crockford(randomness)


@lru_cache(maxsize=8)
def moment(milliseconds: int) -> str:
    """Return the ten characters of a time in a ULID; ids created together mostly share them."""
    milliseconds &= (1 << 48) - 1
    return "".join([_PAIRS[milliseconds >> shift & 1023] for shift in range(40, -1, -10)])


def spelled(randomness: bytes) -> str:
    """Return one random character for each random byte; it wastes bits, but is fast for many ids."""
    return randomness.translate(_CHARACTERS).decode()


def crockford(data: bytes) -> str:
    """Encode bytes, in multiples of five, as Crockford base 32."""
    number, pairs = int.from_bytes(data), _PAIRS
    if len(data) != 10:
        return "".join([pairs[number >> shift & 1023] for shift in range(len(data) * 8 - 10, -1, -10)])
    # The random part of a ULID; every wire has one. Without a loop it takes half the time.
    return (
        f"{pairs[number >> 70]}{pairs[number >> 60 & 1023]}{pairs[number >> 50 & 1023]}{pairs[number >> 40 & 1023]}"
        f"{pairs[number >> 30 & 1023]}{pairs[number >> 20 & 1023]}{pairs[number >> 10 & 1023]}{pairs[number & 1023]}"
    )


def derived_ulid(milliseconds: int, *cause: str) -> str:
    """Return the ULID that a cause always has: the time of the cause, and a hash in place of randomness."""
    return ulid(milliseconds, sha256("\n".join(cause).encode()).digest()[:10])


def hashed_ulid(data: bytes) -> str:
    """Return a ULID made of the first bits of a SHA-256, for ids without a time."""
    digest = sha256(data).digest()
    return ulid(int.from_bytes(digest[:6]), digest[6:16])


def event_id(wire_id: str) -> str:
    """Return the public id of the event of a wire."""
    return "evt_" + wire_id.removeprefix("wire_")


def wire_id_of(event: str) -> str:
    """Return the wire id of a public event id."""
    return "wire_" + event.removeprefix("evt_")


class Stream(msgspec.Struct, frozen=True):
    """The parts of a stream id; `attempt` is 0 for every kind but task."""

    kind: str
    subject: str
    attempt: int = 0


def task_stream(task_id: str, attempt: int) -> str:
    """Return the stream id of an attempt at a task."""
    return f"task:{task_id}:attempt:{attempt}"


@lru_cache(maxsize=4096)
def parse_stream(stream_id: str) -> Stream:
    """Parse a stream id that is valid by schema."""
    kind, subject, *rest = stream_id.split(":")
    return Stream(kind, subject, int(rest[1]) if rest else 0)


# The payload field that repeats the subject of the stream, by kind of stream.
SUBJECT_FIELD = {
    kind: f"{kind}_id"
    for kind in ("task", "agent", "workflow", "queue", "role", "workspace", "artifact", "project", "phase")
}


def stated(wire: dict[str, Any], field: str) -> Any:
    """Return the value of `field`, from the payload of a wire or from its stream; None if it has none."""
    value = wire["payload"].get(field)
    if value is not None:
        return value
    stream = parse_stream(wire["stream"]["stream_id"])
    if SUBJECT_FIELD.get(stream.kind) == field:
        return stream.subject
    return stream.attempt if field == "attempt" and stream.attempt else None
