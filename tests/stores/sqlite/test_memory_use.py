"""A store's memory does not grow with what it holds: not while writing, not while reading it all again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RECORDS = 1_000_000 if os.environ.get("REDKEY_TEST_LONG") == "1" else 30_000

CHILD = """
import json, os, sys
from pathlib import Path
from redkey.ledger.ports import Entry, Row
from redkey.stores.sqlite import SqliteStore
from redkey.wire.ids import derived_ulid

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

store, total = SqliteStore(sys.argv[1]), int(sys.argv[2])
topic = store.create_topic()
sizes = []
for first in range(0, total, 100):
    names = [derived_ulid(1_778_000_000_000 + n, str(n)) for n in range(first, first + 100)]
    with store.write(topic) as unit:
        unit.append(topic, [Entry(b"x" * 500, "wire_" + name, ("task_" + name, "agt_1")) for name in names], first)
        unit.put_rows(topic, [Row("task", "task_" + name, b"y" * 200, "open", 1) for name in names])
    if first % (total // 10) < 100:
        sizes.append(resident())
after, read = 0, 0
while batch := store.read(topic, after):
    after, read = batch[-1].sequence, read + len(batch)
assert read == total
sizes.append(resident())
store.tree(topic).root()
sizes.append(resident())
print(json.dumps(sizes))
store.close()
"""


def test_memory_stays_flat_over_many_records(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(RECORDS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    sizes = json.loads(done.stdout)
    # Page caches fill up to their bound, 16 MiB for the writer and each reader; nothing else may grow.
    assert sizes[-1] - sizes[0] < 45_000, sizes
    assert sizes[-3] - sizes[len(sizes) // 2] < 10_000, sizes
