"""The servers on one database: a row each, renewed every second or so by the thread that listens.

After a failover the rows also say which servers have confirmed the new timeline; see `timeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from redkey.stores.keys import server_id
from redkey.stores.postgres.connections import Connection
from redkey.stores.postgres.schema import SQL
from redkey.stores.postgres.timeline import confirm


class Servers:
    """This server's row, and how many servers are alive."""

    def __init__(self, heads: Callable[[], Mapping[str, int]]) -> None:
        """`heads` gives the heads by topic that this server knows to be committed."""
        self._heads = heads
        self._id = ""
        self._url = self._version = ""
        # Servers that were seen within the last seconds, this one included.
        self.alive = 1

    def join(self, url: str, version: str, home: Path) -> None:
        """Register: from now on the row is renewed. It replaces those of dead servers of the same data directory."""
        self._url, self._version = url, version
        self._id = f"{server_id(home)}/{url}"

    def renew(self, connection: Connection) -> None:
        """Renew this server's row, count the others, delete what dead ones left, confirm a new timeline."""
        if self._id:
            connection.execute(SQL["renew_server"], (self._id, self._url, self._version))
            connection.execute(SQL["delete_servers"])
            connection.execute(SQL["delete_abandoned"])
            connection.execute(SQL["delete_predecessors"], (self._id.partition("/")[0] + "/",))
            self.alive = max(1, connection.execute(SQL["count_servers"]).fetchall()[0][0])
            confirm(connection, self._id, self._heads())

    def leave(self, connection: Connection) -> None:
        """Delete this server's row."""
        if self._id:
            connection.execute(SQL["delete_server"], (self._id,))
