"""INSERT, UPDATE ... FOR UPDATE SKIP LOCKED, UPDATE: three commits a cycle, by asyncpg, as pgmq and its kin do it."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import asyncpg

ASKED = json.loads(sys.argv[1])
BODY = "x" * ASKED["bytes"]
TABLE = "CREATE TABLE IF NOT EXISTS task (id bigserial PRIMARY KEY, state text NOT NULL, body text NOT NULL)"
INDEX = "CREATE INDEX IF NOT EXISTS task_waiting ON task (id) WHERE state = 'waiting'"
CREATE = "INSERT INTO task (state, body) VALUES ('waiting', $1)"
CLAIM = """
UPDATE task SET state = 'held' WHERE id =
  (SELECT id FROM task WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, body
"""
COMPLETE = "UPDATE task SET state = 'done' WHERE id = $1"


async def work(count: int) -> None:
    """Create, claim and complete tasks as one worker."""
    connection = await asyncpg.connect(ASKED["place"]["dsn"])
    for _ in range(count):
        await connection.execute(CREATE, BODY)
        while (claimed := await connection.fetchrow(CLAIM)) is None:
            await asyncio.sleep(0)
        await connection.execute(COMPLETE, claimed["id"])
    await connection.close()


async def main() -> None:
    """Run the measurement and print its result."""
    connection = await asyncpg.connect(ASKED["place"]["dsn"])
    await connection.execute(TABLE)
    await connection.execute(INDEX)
    await connection.execute("TRUNCATE task")
    await connection.close()
    workers, each = ASKED["workers"], ASKED["tasks"] // ASKED["workers"]
    begun = time.perf_counter()
    await asyncio.gather(*(work(each) for _ in range(workers)))
    print(json.dumps({"cycles": workers * each, "seconds": time.perf_counter() - begun}))


asyncio.run(main())
