"""publish (acknowledged), fetch one, ack (confirmed) on a file stream, by nats-py."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import nats
from nats.js.api import ConsumerConfig, RetentionPolicy, StreamConfig

ASKED = json.loads(sys.argv[1])
BODY = b"x" * ASKED["bytes"]


async def work(count: int) -> None:
    """Create, claim and complete tasks as one worker."""
    connection = await nats.connect(ASKED["place"]["url"])
    stream = connection.jetstream()
    waiting = await stream.pull_subscribe("task", durable="workers", stream="tasks")
    for _ in range(count):
        await stream.publish("task", BODY)
        (message,) = await waiting.fetch(1, timeout=30)
        await message.ack_sync()
    await connection.close()


async def main() -> None:
    """Run the measurement and print its result."""
    connection = await nats.connect(ASKED["place"]["url"])
    stream = connection.jetstream()
    for name in [found.config.name for found in await stream.streams_info()]:
        await stream.delete_stream(name)
    settings = StreamConfig(name="tasks", subjects=["task"], retention=RetentionPolicy.WORK_QUEUE)
    await stream.add_stream(settings)
    await stream.add_consumer("tasks", ConsumerConfig(durable_name="workers", max_ack_pending=10_000))
    workers, each = ASKED["workers"], ASKED["tasks"] // ASKED["workers"]
    begun = time.perf_counter()
    await asyncio.gather(*(work(each) for _ in range(workers)))
    print(json.dumps({"cycles": workers * each, "seconds": time.perf_counter() - begun}))
    await connection.close()


asyncio.run(main())
