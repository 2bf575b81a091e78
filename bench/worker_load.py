"""Tasks through `rk.worker`, with the SDK of the measured checkout: `python -m bench.worker_load JSON`.

Each slot claims, starts and completes one task after the other. After some tasks to warm up it reads its own clocks and
the server's, reads them again after the measured number of tasks, and prints the differences as one line of JSON. The
queue must contain one more task for each slot, or the last ones would wait. It is a separate program, because the SDK
must come from the same checkout as the server.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from bench.clocks import Spent, spent
from redkey.client import Context, RedKey


class Handler:
    """Counts its tasks, and reads the clocks at the first and the last measured one."""

    def __init__(self, asked: dict[str, Any], rk: RedKey) -> None:
        self._asked, self._rk, self._lock = asked, rk, Lock()
        self._count = 0
        self.readings: list[tuple[float, float, Spent]] = []

    def __call__(self, ctx: Context) -> dict[str, int]:
        with self._lock:
            if self._count in (self._asked["warm"], self._asked["warm"] + self._asked["tasks"]):
                cost = spent(self._asked["pid"], Path(self._asked["cells"]))
                self.readings.append((time.perf_counter(), time.process_time(), cost))
                if len(self.readings) == 2:
                    self._rk.stop()
            self._count += 1
        return {"characters": len(ctx.input["guest"])}


def run(asked: dict[str, Any]) -> None:
    """Run the load and print the result."""
    with RedKey(asked["url"], asked["key"]) as rk:
        handler = Handler(asked, rk)
        work = rk.worker(queue=asked["queue"], roles=[asked["role"]], agent=asked["agent"], concurrency=asked["slots"])
        work(handler)
        rk.run()
    (begun, client, before), (ended, client_ended, after) = handler.readings
    counted = {"works": asked["tasks"], "seconds": ended - begun, "client_seconds": client_ended - client}
    print(json.dumps({**counted, "spent": asdict(after - before)}))


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
