"""Huey on SQLite with fsync: a producer, and a consumer process with threads; tasks need no complete step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from huey import SqliteHuey

if __name__ == "__main__":
    ASKED = json.loads(sys.argv[1])
    os.environ["BENCH_FILE"] = str(Path(tempfile.mkdtemp(dir=ASKED["folder"])) / "huey.db")

huey = SqliteHuey("bench", filename=os.environ["BENCH_FILE"], fsync=True, results=False)


@huey.task()
def noop(body: str) -> None:
    """The empty task."""


def main() -> None:
    """Run the measurement and print its result."""
    body, count = "x" * ASKED["bytes"], ASKED["tasks"]
    command = [
        sys.executable,
        "-m",
        "huey.bin.huey_consumer",
        "huey_sqlite.huey",
        "--quiet",
        "-d",
        "0.005",
        "-m",
        "0.01",
    ]
    quiet = subprocess.DEVNULL
    options = ["-w", str(ASKED["workers"]), "-k", "thread"]
    worker = subprocess.Popen([*command, *options], cwd=Path(__file__).parent, stdout=quiet, stderr=quiet)
    try:
        noop(body)
        while huey.pending_count():
            time.sleep(0.01)
        begun = time.perf_counter()
        for _ in range(count):
            noop(body)
        while huey.pending_count():
            time.sleep(0.005)
        print(json.dumps({"cycles": count, "seconds": time.perf_counter() - begun}))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
