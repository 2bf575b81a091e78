"""Failover: a database on another timeline may lack the last commits. Writes stay closed until that is ruled out.

Each unit compares the timeline of the database with the one that was confirmed last, in its first round trip. After a
promotion they differ, and every unit is refused. Each registered server then compares the heads that it knows with
those of the database: it confirms, or says what is missing. What it knows survives its death (`heads`), and no row of
the table of servers is deleted meanwhile. When all have confirmed, the new timeline is accepted and writes go on. When
a commit is lost, or a server does not come back, an operator decides (`redkey ledger new-epoch`): the ledger goes on
from what the database has, in a new epoch, as after a restore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from redkey.errors import StoreFailed
from redkey.stores.postgres.connections import Connection
from redkey.stores.postgres.heads import KnownHead, Remembered
from redkey.stores.postgres.schema import SQL

_log = structlog.get_logger("redkey.stores")
# How many missing heads are named.
_NAMED = 10


def check_timeline(found: Sequence[Any]) -> None:
    """Refuse to write while the timeline of the database is not the confirmed one."""
    if found and found[0][0] != found[0][1]:
        raise StoreFailed(
            f"the database was failed over (timeline {found[0][0]} to {found[0][1]}): writes wait until every server "
            "confirms its last head; if one cannot, run redkey ledger new-epoch on the store",
            code="failover_unconfirmed",
        )


def find_lost(connection: Connection, heads: Mapping[str, KnownHead]) -> list[str]:
    """Say which of some heads the database does not have."""
    known = [(topic, head.sequence, head.running_hash) for topic, head in heads.items()]
    columns = [list(column) for column in zip(*known, strict=True)] or [[], [], []]
    return [
        f"topic {topic} ends at {stored}, not {sequence}"
        if stored < sequence
        else f"record {sequence} of topic {topic} is another one"
        for topic, sequence, stored in connection.execute(SQL["lost_heads"], columns).fetchall()
    ]


def confirm(
    connection: Connection, servers: Sequence[str], heads: Mapping[str, KnownHead], current: int, left: Remembered
) -> None:
    """After a failover: compare what this server knows with what the database has, and accept it when all agree.

    `servers` are its own name and those of dead servers whose heads, `left`, it took over.
    """
    missing = find_lost(connection, heads)
    if left.is_incomplete:
        missing.append("the last heads of this server: it was not stopped in order, and cannot know all of them")
    connection.execute(SQL["confirm_timeline"], (0 if missing else current, "; ".join(missing[:_NAMED]), list(servers)))
    waiting = connection.execute(SQL["unconfirmed"], (current,)).fetchall()
    if waiting:
        _log.warning("the database was failed over; writes are closed", timeline=current, unconfirmed=waiting)
        return
    connection.execute(SQL["accept_timeline"])
    _log.info("all servers confirmed the new timeline; writes are open", timeline=current)
