"""DBOS: workflows of one step on a queue with the asked concurrency, in one process."""

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


@DBOS.step()
def noop(body: str) -> int:
    """The empty task."""
    return len(body)


@DBOS.workflow()
def task(body: str) -> int:
    """A workflow of one step."""
    return noop(body)


def main() -> None:
    """Run the measurement and print its result."""
    body, count = "x" * ASKED["bytes"], ASKED["tasks"]
    DBOS.launch()
    queue = DBOS.register_queue("tasks", worker_concurrency=ASKED["workers"], polling_interval_sec=0.05)
    queue.enqueue(task, body).get_result()
    begun = time.perf_counter()
    for handle in [queue.enqueue(task, body) for _ in range(count)]:
        handle.get_result()
    print(json.dumps({"cycles": count, "seconds": time.perf_counter() - begun}), flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main()
