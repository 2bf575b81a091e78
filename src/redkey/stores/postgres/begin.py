"""The first round trip of a unit: the lock, the head, the clock, what is due, and what others wrote.

The row of the topic is the lock and the head. READ COMMITTED is stated: after a wait, the lock returns the newest
commit and the next statement sees its records. PostgreSQL ends a unit that takes too long after it has the lock
(`transaction_timeout`), so a frozen server delays the others by no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redkey.errors import WriterBusy
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.stores.postgres.connections import Connection, Connections
from redkey.stores.postgres.queries import records
from redkey.stores.postgres.schema import SQL
from redkey.stores.postgres.timeline import check_timeline
from redkey.stores.postgres.topics import TopicState

# A unit waits longer for its lock than another one may keep it.
LOCK_SECONDS = 8.0
UNIT_SECONDS = 5.0
# Records of others that come with the lock; what is beyond is read in further pages.
NEWS_LIMIT = 1000


class Begun(msgspec.Struct):
    """What the first round trip found. `number` is None when the topic does not exist."""

    topic: str | None
    state: TopicState | None
    transaction: str
    # The clock of the database in nanoseconds; 0 when it was not read.
    now: int = 0
    number: int | None = None
    units: int = 0
    head: Head = EMPTY_HEAD
    due: int = 0
    news: Sequence[Record] = ()
    # The timeline of the database, which is the accepted one.
    timeline: int | None = None


def begin_topic(
    connections: Connections, connection: Connection, topic: str, state: TopicState, *, wait: bool
) -> Begun:
    """Lock a topic; WriterBusy if that takes too long, or with `wait=False` if it is not free."""
    tail = state.tail
    after = tail.head.sequence if tail is not None else 2**62
    found = connections.pipeline(
        connection,
        [
            (SQL["begin"], ()),
            (SQL["lock_timeout"], (f"{LOCK_SECONDS:g}s",)),
            (SQL["lock_topic" if wait else "try_lock_topic"], (topic,)),
            (SQL["unit_facts"], {"seconds": f"{UNIT_SECONDS:g}s", "topic": topic}),
            (SQL["records_after"], (state.number or -1, after, NEWS_LIMIT)),
        ],
    )
    locked, (_, existing, due, confirmed, current), news = found[2], found[3][0], found[4]
    check_timeline([(confirmed, current)] if confirmed is not None else ())
    if not locked:
        if existing is not None:
            raise WriterBusy
        return Begun(topic, state, "")
    number, sequence, timestamp, running_hash, units, transaction, microseconds = locked[0]
    head = Head(sequence, timestamp, running_hash) if sequence else EMPTY_HEAD
    return Begun(
        topic,
        state,
        transaction,
        microseconds * 1000,
        number,
        units,
        head,
        due or 0,
        records(topic, news),
        current,
    )


def begin_store(connections: Connections, connection: Connection, *, wait: bool) -> Begun:
    """Lock what belongs to no topic."""
    found = connections.pipeline(
        connection,
        [
            (SQL["begin"], ()),
            (SQL["lock_timeout"], (f"{LOCK_SECONDS:g}s",)),
            (SQL["lock_store" if wait else "try_lock_store"], ()),
            (SQL["transaction_timeout"], (f"{UNIT_SECONDS:g}s",)),
            (SQL["timeline"], ()),
        ],
    )
    check_timeline(found[4])
    got, transaction = found[2][0]
    if got is False:
        raise WriterBusy
    return Begun(None, None, transaction)
