"""A process that writes to a data directory as fast as it gets its turn; tests and the bench run several of them.

    python hammer.py DIR TOPIC UNITS BATCH NAME

It waits for a line on standard input, so that all begin together, and prints one line at its end: the sequences
that it was told are its own, and when each unit was done.
"""

from __future__ import annotations

import json
import sys
import time

from redkey.errors import WriterBusy
from redkey.ledger.ports import Entry
from redkey.stores.sqlite import SqliteStore


def main(directory: str, topic: str, units: int, batch: int, name: str) -> None:
    store = SqliteStore(directory)
    print("ready", flush=True)
    sys.stdin.readline()
    own: list[int] = []
    done: list[float] = []
    for number in range(units):
        entries = [Entry(b'{"by":"%s"}' % name.encode(), f"wire_{name}_{number}_{n}", (name,)) for n in range(batch)]
        # As the coordinator does: try, and only where that fails wait for the lock.
        try:
            unit_of_work = store.write(topic, wait=False)
            unit = unit_of_work.__enter__()
        except WriterBusy:
            _wait(store)
            unit_of_work = store.write(topic, wait=False)
            unit = unit_of_work.__enter__()
        records = unit.append(topic, entries, unit.head(topic).sequence)
        unit_of_work.__exit__(None, None, None)
        own += [record.sequence for record in records]
        done.append(time.monotonic())
    store.close()
    print(json.dumps({"own": own, "done": done}), flush=True)


def _wait(store: SqliteStore) -> None:
    """Wait for the lock, again where another process was stopped for seconds while it had it."""
    while True:
        try:
            return store.hold()
        except WriterBusy:
            continue


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
