"""A server with a bug: `python tests/history/planted.py BUG -m redkey ARGUMENTS...` is `redkey ARGUMENTS...`, broken.

| bug | what it does |
|---|---|
| `lost` | every 8th unit, from the 16th on, is answered and rolled back |
| `double` | a task that somebody holds can be claimed by others |
| `gap` | in the 12th unit a record is deleted, or in the first one after it that has 20 records before it |
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from redkey.cli import main
from redkey.stores.sqlite.unit import SqliteUnit
from redkey.stores.sqlite.writer import Writer

_units = count(1)
_commit = Writer.commit


def _lost() -> None:
    def commit(self: Writer, unit: SqliteUnit) -> None:
        # The first ones belong to the start.
        if (number := next(_units)) >= 16 and number % 8 == 0:
            self.roll_back(unit)
        else:
            _commit(self, unit)

    Writer.commit = commit  # type: ignore[method-assign]


def _double() -> None:
    from redkey.reducers import claim

    def open_to(task: Any, now: int) -> bool:
        return task.state in ("available", "claimed", "working", "in_progress") and not task.reserved

    claim.open_to = open_to


def _gap() -> None:
    deleted = 0

    def commit(self: Writer, unit: SqliteUnit) -> None:
        nonlocal deleted
        if next(_units) >= 12 and not deleted:
            sql = "DELETE FROM record WHERE position = (SELECT max(position) - 20 FROM record)"
            deleted = self._connection.execute(sql).rowcount
        _commit(self, unit)

    Writer.commit = commit  # type: ignore[method-assign]


BUGS: dict[str, Callable[[], None]] = {"lost": _lost, "double": _double, "gap": _gap}

if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    # What follows is "-m redkey", as for the interpreter.
    main(sys.argv[4:])
