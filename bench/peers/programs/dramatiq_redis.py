"""A producer and dramatiq workers in another process; dramatiq's own acknowledgement completes a task.

`dramatiq` runs with one thread per requested worker, in one process: two processes were slower on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import dramatiq
from dramatiq.brokers.redis import RedisBroker

if __name__ == "__main__":
    ASKED = json.loads(sys.argv[1])
    os.environ["BENCH_REDIS"] = ASKED["place"]["url"]

broker = RedisBroker(url=os.environ["BENCH_REDIS"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(body: str) -> None:
    """The empty task."""


def drained() -> bool:
    """Whether nothing waits and nothing is held: dramatiq keeps held messages in sets of acknowledgements."""
    return broker.do_qsize("default") == 0


def main() -> None:
    """Run the measurement and print its result."""
    body, count = "x" * ASKED["bytes"], ASKED["tasks"]
    broker.client.flushall()
    command = [sys.executable, "-m", "dramatiq", "dramatiq_redis", "--processes", "1"]
    quiet = subprocess.DEVNULL
    worker = subprocess.Popen(
        [*command, "--threads", str(ASKED["workers"])], cwd=Path(__file__).parent, stdout=quiet, stderr=quiet
    )
    try:
        noop.send(body)
        while not drained():
            time.sleep(0.01)
        begun = time.perf_counter()
        for _ in range(count):
            noop.send(body)
        while not drained():
            time.sleep(0.005)
        print(json.dumps({"cycles": count, "seconds": time.perf_counter() - begun}))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
