"""put, reserve, delete on one connection a worker, by a bare asyncio client."""

from __future__ import annotations

import asyncio
import json
import sys
import time

ASKED = json.loads(sys.argv[1])
BODY = b"x" * ASKED["bytes"]
PUT = b"put 0 0 60 %d\r\n%s\r\n" % (len(BODY), BODY)


async def work(count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", ASKED["place"]["port"])
    for _ in range(count):
        writer.write(PUT)
        assert (await reader.readline()).startswith(b"INSERTED")
        writer.write(b"reserve\r\n")
        answer = (await reader.readline()).split()
        assert answer[0] == b"RESERVED"
        await reader.readexactly(int(answer[2]) + 2)
        writer.write(b"delete %s\r\n" % answer[1])
        assert await reader.readline() == b"DELETED\r\n"
    writer.close()


async def main() -> None:
    workers, each = ASKED["workers"], ASKED["tasks"] // ASKED["workers"]
    begun = time.perf_counter()
    await asyncio.gather(*(work(each) for _ in range(workers)))
    print(json.dumps({"cycles": workers * each, "seconds": time.perf_counter() - begun}))


asyncio.run(main())
