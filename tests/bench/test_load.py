"""The load client: whole answers however they come, work again and again until the time is over, clear failures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from bench import load
from bench.load import Lane, Work, drive, http_answer, milliseconds

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", 0),
        (ANSWER[:20], 0),
        (ANSWER[:-1], 0),
        (ANSWER, len(ANSWER)),
        (ANSWER + b"HTTP", len(ANSWER)),
        (ANSWER.lower(), len(ANSWER)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 27),
        # A length in the body is not the answer's.
        (b"HTTP/1.1 304 Not Modified\r\n\r\n\r\ncontent-length: 9", 29),
    ],
)
def test_an_answer_is_whole_with_its_body(data: bytes, size: int) -> None:
    assert http_answer(data) == size


def test_an_answer_without_a_length_is_refused() -> None:
    with pytest.raises(RuntimeError, match="without a length"):
        http_answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


@contextmanager
def serving(answer: Callable[[socket.socket, bytes], None]) -> Iterator[tuple[str, int]]:
    """A server that gives each request, of whatever it has at once, to `answer`."""
    threads: list[threading.Thread] = []

    def talk(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                answer(connection, data)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(threading.Thread(target=talk, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads.append(threading.Thread(target=accept))
        threads[-1].start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def _twice() -> Work:
    for number in (b"1", b"2"):
        assert (yield b"GET /%b HTTP/1.1\r\n\r\n" % number) == ANSWER


def test_every_lane_works_until_the_time_is_over_and_finishes_what_it_began() -> None:
    heard: list[bytes] = []

    def answer(connection: socket.socket, data: bytes) -> None:
        heard.append(data)
        # In two parts, the second of which may come later.
        connection.sendall(ANSWER[:30])
        connection.sendall(ANSWER[30:])

    with serving(answer) as place, closing(Lane(place, _twice)) as one, closing(Lane(place, _twice)) as other:
        once = drive([one, other], 0)
        assert (len(once.works), len(once.requests)) == (2, 4)
        # Long enough for a busy machine to begin some more.
        more = drive([one, other], 1)
    assert len(more.works) > 2
    assert len(more.requests) == 2 * len(more.works)
    assert one.requests + other.requests == len(heard) == 4 + len(more.requests)
    assert more.seconds >= 1
    assert more.rate == pytest.approx(len(more.works) / more.seconds)
    assert 0 < more.client_microseconds < 1e6
    # A piece of work lasts as long as its requests, give or take what the client itself takes.
    assert sum(more.works) >= sum(more.requests)


def test_a_closed_connection_is_an_error() -> None:
    with (
        serving(lambda connection, _: connection.shutdown(socket.SHUT_RDWR)) as place,
        closing(Lane(place, _twice)) as lane,
        pytest.raises(ConnectionResetError, match="before it answered"),
    ):
        drive([lane], 1)


def test_an_answer_that_does_not_come_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda *_: None) as place, closing(Lane(place, _twice)) as lane:
        monkeypatch.setattr(load, "PATIENCE_SECONDS", 0.05)
        with pytest.raises(RuntimeError, match="no answer within"):
            drive([lane], 1)


def test_more_than_one_answer_is_an_error() -> None:
    with (
        serving(lambda connection, _: connection.sendall(ANSWER + b"HTTP/1.1 500")) as place,
        closing(Lane(place, _twice)) as lane,
        pytest.raises(RuntimeError, match="more bytes than one answer"),
    ):
        drive([lane], 1)


def test_percentiles_are_of_milliseconds() -> None:
    assert milliseconds([0.001 * number for number in range(1, 100)], 50) == pytest.approx(50)
    assert milliseconds([0.25], 99) == 250
