"""A producer and `rq` worker processes, which fork for every job; at most 8, since each is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import redis
import rq

ASKED = json.loads(sys.argv[1])


def main() -> None:
    """Run the measurement and print its result."""
    body, count = "x" * ASKED["bytes"], ASKED["tasks"]
    store = redis.Redis.from_url(ASKED["place"]["url"])
    store.flushall()
    queue = rq.Queue(connection=store)
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", ASKED["place"]["url"], "--quiet"]
    quiet, workers = subprocess.DEVNULL, min(8, ASKED["workers"])
    running = [subprocess.Popen(command, stdout=quiet, stderr=quiet) for _ in range(workers)]
    try:
        while len(rq.Worker.all(connection=store)) < workers:
            time.sleep(0.05)
        begun = time.perf_counter()
        for _ in range(count):
            queue.enqueue("builtins.len", body)
        while queue.finished_job_registry.count < count:
            time.sleep(0.01)
        print(json.dumps({"cycles": count, "seconds": time.perf_counter() - begun, "workers": workers}))
    finally:
        for worker in running:
            worker.kill()
            worker.wait()


main()
