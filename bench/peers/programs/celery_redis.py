"""A producer and one `celery worker` process; a task is complete when its result is stored.

The worker is ready when a first task has returned; the clock runs from the first task sent to the last result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import celery
import redis

if __name__ == "__main__":
    ASKED = json.loads(sys.argv[1])
    os.environ["BENCH_REDIS"] = ASKED["place"]["url"]

app = celery.Celery("celery_redis", broker=os.environ["BENCH_REDIS"], backend=os.environ["BENCH_REDIS"])
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 4


@app.task(name="noop")
def noop(body: str) -> int:
    """The empty task."""
    return len(body)


def main() -> None:
    """Run the measurement and print its result."""
    body, count = "x" * ASKED["bytes"], ASKED["tasks"]
    store = redis.Redis.from_url(ASKED["place"]["url"])
    store.flushall()
    command = [sys.executable, "-m", "celery", "-A", "celery_redis", "worker", "--pool", "threads"]
    options = ["--concurrency", str(ASKED["workers"]), "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
    quiet = subprocess.DEVNULL
    worker = subprocess.Popen([*command, *options], cwd=Path(__file__).parent, stdout=quiet, stderr=quiet)
    try:
        noop.delay(body).get(timeout=60)
        done = list(store.scan_iter("celery-task-meta-*"))
        begun = time.perf_counter()
        sent = [noop.delay(body) for _ in range(count)]
        while sum(1 for _ in store.scan_iter("celery-task-meta-*", count=5000)) < count + len(done):
            time.sleep(0.01)
        print(json.dumps({"cycles": len(sent), "seconds": time.perf_counter() - begun}))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
