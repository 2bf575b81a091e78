"""Idempotency keys on the ledger: the window that a world keeps in memory, and the requests that have left it.

A world keeps the keys of the last day, up to a limit. A key that has left this window is still in the record of its
request, where the event index finds it, so it is never mistaken for a new key.
"""

from __future__ import annotations

from collections.abc import Iterator

from redkey.ledger.ports import Reader
from redkey.ledger.record import Record
from redkey.reducers.parties import is_log
from redkey.reducers.world import IDEMPOTENCY_LIMIT, IDEMPOTENCY_NANOSECONDS, World
from redkey.wire.envelope import wire_of
from redkey.wire.ids import event_id
from redkey.wire.payload import request_key
from redkey.wire.subjects import KEYED, key_subject

_PAGE = 5000
# Records with the same subject as a key: none or one, unless a client copies keys.
SAME = 4


def load_window(world: World, reader: Reader, topic: str) -> None:
    """Fill the window of a world from the records; the parties of the world must be loaded."""
    found: list[tuple[str, str, int, int]] = []
    oldest = world.timestamp - IDEMPOTENCY_NANOSECONDS
    for record in _newest_first(reader, topic, KEYED, 0, _PAGE):
        key = request_key(wire_of(record.wire).payload)
        if key is None or not is_log(world, record.payer):
            continue
        if record.timestamp <= oldest or len(found) >= IDEMPOTENCY_LIMIT:
            world.keys_dropped = True
            break
        found.append((*key, record.sequence, record.timestamp))
    for idem, body, sequence, timestamp in reversed(found):
        world.remember(idem, body, sequence, timestamp)


def dropped_event(reader: Reader, topic: str, world: World, idem: str) -> str:
    """Return the event id of the request with a key that has left the window; "" if there is none.

    It costs one lookup in the index, and none while no key has left.
    """
    if not world.keys_dropped:
        return ""
    window = next(iter(world.done.values()), None)
    before = window.sequence if window is not None else world.sequence + 1
    for record in _newest_first(reader, topic, key_subject(idem), before, SAME):
        wire = wire_of(record.wire)
        key = request_key(wire.payload)
        if key is not None and key[0] == idem and is_log(world, record.payer):
            return event_id(wire.wire_id)
    return ""


def _newest_first(reader: Reader, topic: str, subject: str, before: int, page: int) -> Iterator[Record]:
    while records := reader.events(topic, subject, before, page, newest_first=True):
        yield from records
        if len(records) < page:
            return
        before = records[-1].sequence
