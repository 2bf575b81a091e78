"""Failover: a database on another timeline may lack the last commits. Writes stay closed until that is ruled out.

Each unit compares the timeline of the database with the one that was confirmed last, in its first round trip. After a
promotion they differ, and every unit is refused. Each registered server then compares the heads that it knows with
those of the database: it confirms, or says what is missing. When all have confirmed, the new timeline is accepted and
writes go on. When a commit is lost, or a server does not come back, an operator decides (`redkey ledger new-epoch`):
the ledger goes on from what the database has, in a new epoch, as after a restore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from redkey.errors import StoreFailed
from redkey.stores.postgres.connections import Connection
from redkey.stores.postgres.schema import SQL

_log = structlog.get_logger("redkey.stores")


def check_timeline(found: Sequence[Any]) -> None:
    """Refuse to write while the timeline of the database is not the confirmed one."""
    if found and found[0][0] != found[0][1]:
        raise StoreFailed(
            f"the database was failed over (timeline {found[0][0]} to {found[0][1]}): writes wait until every server "
            "confirms its last head; if one cannot, run redkey ledger new-epoch on the store",
            code="failover_unconfirmed",
        )


def confirm(connection: Connection, server: str, heads: Mapping[str, int]) -> None:
    """After a failover: compare what this server knows with what the database has, and accept it when all agree."""
    found = connection.execute(SQL["timeline"]).fetchall()
    if not found or found[0][0] == found[0][1]:
        return
    current = found[0][1]
    stored: dict[str, int] = dict(connection.execute(SQL["heads"], (list(heads),)).fetchall())
    lost = [(topic, head) for topic, head in sorted(heads.items()) if stored.get(topic, 0) < head]
    missing = "; ".join(f"topic {topic} ends at {stored.get(topic, 0)}, not {head}" for topic, head in lost[:10])
    connection.execute(SQL["confirm_timeline"], (0 if lost else current, missing, server))
    waiting = connection.execute(SQL["unconfirmed"], (current,)).fetchall()
    if waiting:
        _log.warning("the database was failed over; writes are closed", timeline=current, unconfirmed=waiting)
        return
    connection.execute(SQL["accept_timeline"])
    _log.info("all servers confirmed the new timeline; writes are open", timeline=current)
