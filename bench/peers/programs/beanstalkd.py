"""put, reserve, delete on one connection per worker, with the same bare client as RedKey's."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, closing

from bench.load import Lane, Work, drive

ASKED = json.loads(sys.argv[1])
BODY = b"x" * ASKED["bytes"]
PUT = b"put 0 0 60 %d\r\n%s\r\n" % (len(BODY), BODY)


def cycle() -> Work:
    """Put a job, reserve one and delete it."""
    assert (yield PUT).startswith(b"INSERTED")
    reserved = yield b"reserve\r\n"
    assert reserved.startswith(b"RESERVED")
    assert (yield b"delete %s\r\n" % reserved.split(b" ", 2)[1]) == b"DELETED\r\n"


def answered(data: bytes) -> int:
    """The length of the answer: a line, and after `RESERVED` the body; 0 if it is incomplete."""
    end = data.find(b"\r\n") + 2
    if end >= 2 and data.startswith(b"RESERVED"):
        end += int(data[: end - 2].rpartition(b" ")[2]) + 2
    return end if 2 <= end <= len(data) else 0


def main() -> None:
    """Run the measurement and print its result."""
    with ExitStack() as stack:
        place = ("127.0.0.1", ASKED["place"]["port"])
        lanes = [stack.enter_context(closing(Lane(place, cycle))) for _ in range(ASKED["workers"])]
        drive(lanes, ASKED["seconds"] / 4, answered)
        load = drive(lanes, ASKED["seconds"], answered)
    print(json.dumps({"cycles": len(load.works), "seconds": load.seconds}))


main()
