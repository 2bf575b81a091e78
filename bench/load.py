"""The load client: many connections in one thread. It is minimal, because it shares the machine with the server.

Sockets block and epoll says which have an answer. A piece of work is a generator: it yields the bytes of a request and
receives the bytes of the whole answer. There are no tasks, futures or callbacks: a create, a claim and a complete cost
the client about 100 microseconds of processor time, of which the kernel takes more than half.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

Work = Generator[bytes, bytes, None]
Answered = Callable[[bytes], int]

PATIENCE_SECONDS = 60.0
_READ_BYTES = 1 << 18
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Load:
    """The result of a load: wall and processor seconds, and the seconds of each request and each piece of work."""

    seconds: float = 0.0
    client_seconds: float = 0.0
    requests: list[float] = field(default_factory=list)
    works: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Finished pieces of work a second."""
        return len(self.works) / self.seconds

    @property
    def client_microseconds(self) -> float:
        """The client's own processor time for one piece of work."""
        return self.client_seconds / len(self.works) * 1e6


def milliseconds(taken: Sequence[float], percent: int) -> float:
    """A percentile of times in seconds."""
    cuts = quantiles(taken, n=100) if len(taken) > 1 else list(taken) * 99
    return cuts[percent - 1] * 1000


class Lane:
    """A connection and the work that is repeated over it."""

    __slots__ = ("asked_at", "begun_at", "buffer", "receive", "requests", "send", "socket", "start", "work")

    def __init__(self, place: tuple[str, int], start: Callable[[], Work]) -> None:
        self.socket = socket.create_connection(place, PATIENCE_SECONDS)
        # No timeout, or Python would call poll(2) before each call.
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send, self.receive = self.socket.sendall, self.socket.recv
        self.start, self.work, self.buffer = start, start(), b""
        self.begun_at = self.asked_at = 0.0
        # How many requests were answered since it was opened.
        self.requests = 0

    def close(self) -> None:
        self.socket.close()


def http_answer(data: bytes) -> int:
    """The length of the HTTP answer at the start of the data; 0 if it is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return 0
    length = _LENGTH.search(data, 0, end)
    if length is None and data[9:12] not in (b"204", b"304"):
        raise RuntimeError(f"an answer without a length: {data[:end]!r}")
    size = end + 4 + (int(length[1]) if length else 0)
    return size if len(data) >= size else 0


def drive(lanes: Sequence[Lane], seconds: float, answered: Answered = http_answer) -> Load:
    """Let every lane repeat its work for some seconds; started work is finished.

    With 0 seconds every lane does its work once.
    """
    load, clock = Load(), time.perf_counter
    asked, worked = load.requests.append, load.works.append
    by_number = {lane.socket.fileno(): lane for lane in lanes}
    with select.epoll() as ready:
        for number in by_number:
            ready.register(number, select.EPOLLIN)
        cpu, begun = time.process_time(), clock()
        end, busy = begun + seconds, len(lanes)
        for lane in lanes:
            lane.work = lane.start()
            request = next(lane.work)
            lane.begun_at = lane.asked_at = clock()
            lane.send(request)
        while busy:
            events = ready.poll(PATIENCE_SECONDS)
            if not events:
                raise RuntimeError(f"no answer within {PATIENCE_SECONDS:.0f} s")
            for number, _ in events:
                lane = by_number[number]
                data = lane.receive(_READ_BYTES)
                if not data:
                    raise ConnectionResetError("the server closed a connection before it answered")
                if lane.buffer:
                    data = lane.buffer + data
                size = answered(data)
                if not size:
                    lane.buffer = data
                    continue
                if size != len(data):
                    raise RuntimeError(f"more bytes than one answer: {data[size:]!r}")
                lane.buffer = b""
                now = clock()
                asked(now - lane.asked_at)
                lane.asked_at = now
                lane.requests += 1
                try:
                    request = lane.work.send(data)
                except StopIteration:
                    worked(now - lane.begun_at)
                    if now >= end:
                        busy -= 1
                        continue
                    lane.begun_at, lane.work = now, lane.start()
                    request = next(lane.work)
                lane.send(request)
        load.seconds, load.client_seconds = clock() - begun, time.process_time() - cpu
    return load
