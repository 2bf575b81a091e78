"""Eight workers of the Python SDK that do what `race.ts` does: `race_workers.py QUEUE FILE`, until SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from redkey.client import RedKey

queue, file = sys.argv[1:]
descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
clients = [RedKey() for _ in range(8)]


def work(rk: RedKey) -> None:
    @rk.worker(queue=queue, lease_seconds=30)
    def race(ctx: Any) -> str:
        os.write(descriptor, f"{ctx.task.task_id} {ctx.claim_id}\n".encode())
        return "python"

    rk.run()


threads = [threading.Thread(target=work, args=(rk,)) for rk in clients]
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: stopped.set())
for thread in threads:
    thread.start()
stopped.wait()
for rk in clients:
    rk.stop()
for thread in threads:
    thread.join()
