"""DBOS: the graph as a workflow that enqueues a level of child workflows and waits for it."""

from __future__ import annotations

import json
import sys
import time

from dbos import DBOS, DBOSConfig

ASKED = json.loads(sys.argv[1])
CONFIG: DBOSConfig = {
    "name": "bench",
    "system_database_url": ASKED["place"]["dsn"].replace("postgresql://", "postgresql+psycopg://"),
    "log_level": "CRITICAL",
    "run_admin_server": False,
}
DBOS(config=CONFIG)


@DBOS.workflow()
def noop() -> None:
    """The empty task."""


@DBOS.workflow()
def graph(levels: int, width: int) -> None:
    """The whole graph as one workflow."""
    queue = DBOS.retrieve_queue("tasks")
    for _ in range(levels):
        for handle in [queue.enqueue(noop) for _ in range(width)]:
            handle.get_result()


def main() -> None:
    """Run the measurement and print its result."""
    DBOS.launch()
    DBOS.register_queue("tasks", worker_concurrency=32, polling_interval_sec=0.05)
    graph(1, 1)
    begun = time.perf_counter()
    graph(ASKED["levels"], ASKED["width"])
    print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main()
