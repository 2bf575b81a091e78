"""A process that writes to PostgreSQL and is killed around each of its round trips, one after the other.

    python -m tests.crash.postgres_run URL

Each round is a process of its own: it opens the store, checks what the ones before it left, and writes units until it
kills itself before or after the chosen round trip. It reports each unit that has ended to this process: the next round
must find such a unit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from redkey.ledger.ports import Row
from redkey.stores.postgres import PostgresStore, connections
from tests.conformance.stores.harness import entries

UNITS = 3
_TOPIC, _REACHED = "1.0.1001", "reached"
_MAIN = threading.get_ident()


class Fuse:
    """Kills this process before or after its k-th round trip; those of other threads do not count."""

    def __init__(self, at: int, when: str) -> None:
        self._at, self._when, self._count = at, when, 0

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is a round trip, with the fuse."""

        def done(*arguments: Any) -> Any:
            if threading.get_ident() != _MAIN:
                return work(*arguments)
            self._count += 1
            if self._count == self._at and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = work(*arguments)
            if self._count == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return done


def write(url: str, at: int, when: str, acknowledged: int, told: int) -> None:
    """One round: check, then write until the fuse goes."""
    fuse = Fuse(at, when)
    connections._run = fuse.around(connections._run)
    connections.Connections.pipeline = fuse.around(connections.Connections.pipeline)  # type: ignore[method-assign]
    with PostgresStore(url) as store:
        if not store.topics():
            store.create_topic()
        reached = int(store.setting(_REACHED) or 0)
        # A unit that was not reported may be there or not, but never in part.
        assert acknowledged <= reached <= acknowledged + 1, (acknowledged, reached)
        assert store.head(_TOPIC).sequence == 2 * reached
        assert len(store.rows(_TOPIC, "task")) == reached
        os.write(told, reached.to_bytes(8))
        for number in range(reached + 1, reached + UNITS + 1):
            with store.write(_TOPIC) as unit:
                head = unit.head(_TOPIC).sequence
                unit.append(_TOPIC, entries(head + 1, 2, "agt_1"), head)
                # A read in between: what was added before goes to the database first.
                assert unit.row(_TOPIC, "task", f"t{number}") is None
                unit.put_rows(_TOPIC, [Row("task", f"t{number}", b"{}")])
                unit.put_fact(_TOPIC, _REACHED, str(number))
            os.write(told, number.to_bytes(8))


def main(url: str) -> None:
    """Play every round; print how many there were and what the last acknowledged unit is."""
    acknowledged, rounds, at, ended = 0, 0, 1, False
    while not ended:
        for when in ("before", "after"):
            mine, told = os.pipe()
            child = os.fork()
            if not child:
                os.close(mine)
                write(url, at, when, acknowledged, told)
                os._exit(0)
            os.close(told)
            while number := os.read(mine, 8):
                acknowledged = int.from_bytes(number)
            os.close(mine)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, -signal.SIGKILL), f"round {at} {when}: {status}"
            # Every round trip of a round was the last one of another.
            ended = status == 0
            rounds += 1
        at += 1
    print(rounds, acknowledged)


if __name__ == "__main__":
    main(sys.argv[1])
