"""The servers on one database: a row each, renewed every second or so by the thread that listens.

After a failover the rows also say which servers have confirmed the new timeline; see `timeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from redkey.stores.postgres.connections import Connection
from redkey.stores.postgres.heads import KeptHeads, KnownHead
from redkey.stores.postgres.schema import SQL
from redkey.stores.postgres.timeline import confirm


class Servers:
    """This server's row, and how many servers are alive."""

    def __init__(self, heads: Callable[[], Mapping[str, KnownHead]], is_quiet: Callable[[], bool]) -> None:
        """`heads` gives the heads by topic that this server knows to be committed; `is_quiet` says that no unit is
        open that could add to them.
        """
        self._heads, self._is_quiet = heads, is_quiet
        self._id = ""
        self._url = self._version = ""
        self._rules = 0
        self._kept: KeptHeads | None = None
        # Servers that were seen within the last seconds, this one included.
        self.alive = 1

    def join(self, name: str, url: str, version: str, rules: int, kept: KeptHeads) -> None:
        """Register this server; its row is renewed from now on, and replaces those of dead servers on its data."""
        self._url, self._version, self._rules, self._kept = url, version, rules, kept
        self._id = name

    def renew(self, connection: Connection) -> None:
        """Renew this server's row, count the others, delete what dead ones left, confirm a new timeline."""
        if self._id and self._kept is not None:
            connection.execute(SQL["renew_server"], (self._id, self._url, self._version, self._rules))
            connection.execute(SQL["delete_abandoned"])
            self.alive = max(1, connection.execute(SQL["count_servers"]).fetchall()[0][0])
            ((accepted, current),) = connection.execute(SQL["timeline"]).fetchall()
            predecessors = [name for name in self._kept.remembered.servers if name != self._id]
            if accepted == current:
                # While a failover is not confirmed, no row is deleted: its server may know of records that are lost.
                connection.execute(SQL["delete_servers"], (predecessors,))
                if self._kept.timeline != accepted:
                    self._kept.begin(accepted, {})
            elif self._is_quiet():
                confirm(connection, [self._id, *predecessors], self._heads(), current, self._kept.remembered)

    def leave(self, connection: Connection) -> None:
        """Delete this server's row."""
        if self._id:
            connection.execute(SQL["delete_server"], (self._id,))
