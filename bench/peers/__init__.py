"""Common alternatives, doing the same work: tasks of 300 bytes, created, claimed and completed.

A peer is a program of `programs/` in an environment of its own, with the server it needs. It gets one JSON argument and
prints one JSON line. Peers without libraries work for `seconds`, the others do `tasks` tasks, which takes about as
long. RedKey is measured by the same rules: its load comes from another process, one operation per request.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers import servers
from bench.peers.environments import PRODUCT, Missing, python_with

PROGRAMS = Path(__file__).parent / "programs"
PROGRAM_SECONDS = 120
TASK_BYTES = 300


@dataclass(frozen=True)
class Peer:
    """One way to run a queue or a graph. `rate` is roughly its operations per second, to size its rounds."""

    name: str
    program: str
    durability: str
    rate: int
    packages: tuple[str, ...] = ()
    server: Callable[[], AbstractContextManager[servers.Place]] | None = None
    # RedKey's cycles over this peer's, at 32 workers.
    aim: float | None = None
    asks: Mapping[str, Any] = field(default_factory=dict)

    def python(self) -> Path:
        """The interpreter of this peer's environment."""
        return python_with(self.program, self.packages) if self.packages else PRODUCT

    def serve(self) -> AbstractContextManager[servers.Place]:
        return self.server() if self.server else nullcontext({})

    def run(self, place: servers.Place, **asked: Any) -> dict[str, Any]:
        """Run the program once; return its result, or raise Missing with the end of its output."""
        with tempfile.TemporaryDirectory(prefix="redkey-bench-") as folder:
            given = json.dumps({"bytes": TASK_BYTES, "place": place, "folder": folder, **self.asks, **asked})
            path = os.pathsep.join([str(PROGRAMS.parents[2]), str(PROGRAMS)])
            command = [str(self.python()), str(PROGRAMS / f"{self.program}.py"), given]
            try:
                ended = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    timeout=PROGRAM_SECONDS,
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], "HOME": folder, "PYTHONPATH": path, "LC_ALL": "C.UTF-8"},
                )
            except subprocess.TimeoutExpired as late:
                raise Missing(f"no result within {PROGRAM_SECONDS} s") from late
        lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
        if ended.returncode or not lines:
            words = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            raise Missing(words[-1][:200])
        said: dict[str, Any] = json.loads(lines[-1])
        return said


_REDIS_PY = "redis==6.4.0"
_EVERYSEC = "append-only file, synced every second"
_COMMITS = "PostgreSQL, synchronous commit"

REDKEY = Peer("RedKey", "redkey_http", "ledger, fsync before every answer", 2000, server=servers.redkey)
# Another server of the same kind: RedKey compared with itself shows the noise.
REDKEY_AGAIN = Peer("RedKey again", "redkey_http", "ledger, fsync before every answer", 2000, server=servers.redkey)
REDKEY_SDK = Peer("RedKey, by its SDK", "redkey_sdk", "ledger, fsync before every answer", 800, server=servers.redkey)
REDKEY_BATCH = Peer(
    "RedKey, 50 a request",
    "redkey_http",
    "ledger, fsync before every answer",
    8000,
    server=servers.redkey,
    asks={"batched": True},
)

QUEUES = (
    Peer(
        "beanstalkd, fsync each write",
        "beanstalkd",
        "binlog, put and delete synced; reserve is not logged",
        2500,
        server=partial(servers.beanstalkd, "-f0"),
        aim=1.0,
    ),
    Peer(
        "beanstalkd, fsync every 50 ms",
        "beanstalkd",
        "binlog, may lose 50 ms",
        10000,
        server=partial(servers.beanstalkd, "-f50"),
    ),
    Peer("NATS JetStream", "jetstream", "file store, no fsync a message", 2500, ("nats-py==2.16.0",), servers.nats),
    Peer(
        "PostgreSQL SKIP LOCKED",
        "skip_locked",
        f"{_COMMITS}, 3 a cycle",
        1500,
        ("asyncpg==0.32.0",),
        servers.postgres,
        1.4,
    ),
    Peer("Dramatiq + Redis", "dramatiq_redis", _EVERYSEC, 1500, ("dramatiq[redis]==2.2.1",), servers.redis, 1.6),
    Peer("Huey, SQLite", "huey_sqlite", "fsync each commit; no complete step", 1200, ("huey==3.5.4",)),
    Peer("Celery + Redis", "celery_redis", _EVERYSEC, 500, ("celery[redis]==5.7.0",), servers.redis, 6.0),
    Peer("RQ", "rq_redis", f"{_EVERYSEC}; at most 8 worker processes", 150, ("rq==2.12.0",), servers.redis, 6.0),
    Peer("Procrastinate", "procrastinate_postgres", _COMMITS, 200, ("procrastinate==3.10.0",), servers.postgres, 12.0),
    Peer("DBOS", "dbos_postgres", _COMMITS, 60, ("dbos==3.3.0",), servers.postgres, 40.0),
)

REDKEY_GRAPH = Peer("RedKey", "redkey_dag", "ledger, fsync before every answer", 0, server=servers.redkey)
GRAPHS = (
    Peer("Prefect", "prefect_dag", "SQLite", 0, ("prefect==3.8.8", "fastapi==0.140.0"), aim=10.0),
    Peer("DBOS", "dbos_dag", _COMMITS, 0, ("dbos==3.3.0",), servers.postgres, aim=10.0),
    Peer("Luigi", "luigi_dag", "a file for each task", 0, ("luigi==3.8.1",)),
    Peer("Dask, two processes", "dask_dag", "none", 0, ("distributed==2026.8.0",), asks={"processes": True}),
    Peer("Dask, in process", "dask_dag", "none", 0, ("distributed==2026.8.0",), aim=1.0, asks={"processes": False}),
)
