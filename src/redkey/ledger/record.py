"""A record is a wire as the ledger holds it: with topic, sequence, consensus timestamp and running hash.

Topic and account ids are Hedera's `shard.realm.num`. Local topics begin at 1.0.1001: a shard that is not
Hedera's, so no local record can be taken for one of the public network. Timestamps are whole nanoseconds
since the epoch; `seconds.nnnnnnnnn` is how Hedera writes them.
"""

from __future__ import annotations

import msgspec

from redkey.wire.times import NANOSECONDS, write_time

LOCAL_PAYER = "1.0.2"
FIRST_LOCAL_TOPIC = 1001
MESSAGE_LIMIT = 1024


class Record(msgspec.Struct, frozen=True, gc=False):
    """One ordered wire of one topic."""

    topic: str
    sequence: int
    timestamp: int
    payer: str
    running_hash: bytes
    wire: bytes


class Head(msgspec.Struct, frozen=True, gc=False):
    """Where a topic ends: the next record has `sequence + 1` and a later timestamp."""

    sequence: int
    timestamp: int
    running_hash: bytes


EMPTY_HEAD = Head(0, 0, bytes(48))


def local_topic(number: int) -> str:
    """Return the id of the `number`-th local topic, counted from 0."""
    return f"1.0.{FIRST_LOCAL_TOPIC + number}"


def entity(text: str) -> tuple[int, int, int]:
    """Parse `shard.realm.num` into three integers; raise ValueError if it is something else."""
    shard, realm, num = (int(part) if part.isascii() and part.isdecimal() else -1 for part in text.split("."))
    if not all(0 <= part < 2**63 for part in (shard, realm, num)):
        raise ValueError(f"{text!r} is not shard.realm.num")
    return shard, realm, num


def hedera_time(timestamp: int) -> str:
    """Write a timestamp as mirror nodes do: `1683553059.977315003`."""
    return f"{timestamp // NANOSECONDS}.{timestamp % NANOSECONDS:09d}"


def parse_hedera_time(text: str) -> int:
    """Parse `seconds.nnnnnnnnn` into nanoseconds; raise ValueError if it is something else."""
    seconds, dot, nanos = text.partition(".")
    if not (
        seconds.isascii() and seconds.isdecimal() and dot and len(nanos) == 9 and nanos.isascii() and nanos.isdecimal()
    ):
        raise ValueError(f"{text!r} is not seconds.nnnnnnnnn")
    return int(seconds) * NANOSECONDS + int(nanos)


# The public API shows a timestamp as wires write it.
iso_time = write_time
