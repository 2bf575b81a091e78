"""Random streams of requests, some damaged, in random segments: the same answers as in one segment, in order, and
exactly one record for each answer that reports one."""

from __future__ import annotations

import os
import random

from tests.harness.server import Server
from tests.http.raw import exchange
from tests.http.test_exactness import BODY, CHUNKED, GOOD, HEALTH, RECORDS, answered, chunks, post
from tests.http.test_exactness import key as key

STREAMS = 1500 if os.environ.get("REDKEY_TEST_LONG") else 60


def stream(draw: random.Random) -> bytes:
    """A few pipelined requests, perhaps damaged."""
    requests = [GOOD, HEALTH, post(CHUNKED, body=_chunked(draw)), GOOD.replace(b"KEY", b"rk_wrong_key"), HEALTH]
    data = b"".join(draw.choices(requests, k=draw.randrange(1, 7)))
    for _ in range(draw.choice((0, 0, 1, 1, 3))):
        place = draw.randrange(len(data))
        data = data[:place] + draw.choice((b"", b"\r\n", b"\x00", b" ", b"0", draw.randbytes(1))) + data[place + 1 :]
    return data


def _chunked(draw: random.Random) -> bytes:
    """Return the body in chunks of random sizes."""
    cut = draw.randrange(1, len(BODY))
    return b"%x\r\n%b\r\n" % (cut, BODY[:cut]) + chunks(BODY[cut:], trailers=draw.choice((b"", b"a: b\r\n")))


def test_random_streams_are_answered_alike_in_one_piece_and_in_many(server: Server, key: bytes) -> None:
    for seed in range(STREAMS):
        draw = random.Random(seed)
        data = stream(draw).replace(b"KEY", key)
        whole, recorded = answered(server, key, [data])
        assert recorded == whole.count(201) * RECORDS, (seed, data)
        cuts = sorted(draw.sample(range(1, len(data)), min(draw.randrange(1, 30), len(data) - 1)))
        segments = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert answered(server, key, segments) == (whole, recorded), (seed, data)


def test_random_bytes_never_stop_the_server(server: Server) -> None:
    draw = random.Random(7)
    for _ in range(STREAMS):
        answers = exchange(server, [draw.randbytes(draw.randrange(1, 2000))])
        assert all(answer.status >= 400 for answer in answers)
    assert exchange(server, [HEALTH])[0].status == 200
