"""Procrastinate: jobs deferred by eight tasks at once, and a worker process with the asked concurrency."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import procrastinate
import psycopg

if __name__ == "__main__":
    ASKED = json.loads(sys.argv[1])
    os.environ["BENCH_DSN"] = ASKED["place"]["dsn"]

DSN = os.environ["BENCH_DSN"]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=DSN, max_size=16))
DONE = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"


@app.task(name="noop")
async def noop(body: str) -> None:
    """The empty task."""


async def defer(count: int) -> None:
    """Defer jobs."""
    for _ in range(count):
        await noop.defer_async(body="x" * ASKED["bytes"])


async def done(connection: psycopg.AsyncConnection, count: int) -> None:
    """Wait until all jobs are done."""
    while (await (await connection.execute(DONE)).fetchone())[0] < count:
        await asyncio.sleep(0.01)


async def main() -> None:
    """Run the measurement and print its result."""
    count = ASKED["tasks"] // 8 * 8
    async with app.open_async(), await psycopg.AsyncConnection.connect(DSN, autocommit=True) as connection:
        await connection.execute("DROP SCHEMA public CASCADE")
        await connection.execute("CREATE SCHEMA public")
        await app.schema_manager.apply_schema_async()
        command = [sys.executable, "-m", "procrastinate", "--app", "procrastinate_postgres.app", "worker"]
        quiet = subprocess.DEVNULL
        options = ["--concurrency", str(ASKED["workers"])]
        worker = subprocess.Popen([*command, *options], cwd=Path(__file__).parent, stdout=quiet, stderr=quiet)
        try:
            await defer(1)
            await done(connection, 1)
            begun = time.perf_counter()
            await asyncio.gather(*(defer(count // 8) for _ in range(8)))
            await done(connection, count + 1)
            print(json.dumps({"cycles": count, "seconds": time.perf_counter() - begun}))
        finally:
            worker.terminate()
            worker.wait()


if __name__ == "__main__":
    asyncio.run(main())
