"""Servers of other organisations that are asked for bodies: nothing is taken that does not have the hash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from redkey.hedera import peers
from redkey.hedera.peers import Peers

BODY = b'{"title":"Write the intro"}'
NAME = sha256(BODY).hexdigest()
KEY = "rk_" + "peer" * 8


@contextmanager
def server(status: int, data: bytes, asked: list[tuple[str, str]]) -> Iterator[str]:
    """A server that answers every request with the same; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("authorization", "")))
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


WRONG: dict[str, tuple[int, bytes]] = {
    "other bytes": (200, b"something else"),
    "none": (404, b""),
    "no right": (403, b"{}"),
    "a redirect": (302, b""),
    "a fault": (500, BODY),
    "too much": (200, BODY + b" " * 100),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_server_without_the_body_is_passed_over_and_the_next_one_is_asked(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_LIMIT_BYTES", len(BODY))
    first: list[tuple[str, str]] = []
    second: list[tuple[str, str]] = []
    with ExitStack() as stack:
        bad = stack.enter_context(server(*WRONG[wrong], first))
        good = stack.enter_context(server(200, BODY, second))
        alone, both = Peers([(bad, KEY)]), Peers([(bad, KEY), (good + "/", KEY)])
        assert alone.fetch(NAME) is None
        assert both.fetch(NAME) == BODY
        alone.close()
        both.close()
    assert first == [(f"/content/{NAME}", f"Bearer {KEY}")] * 2
    assert second == [(f"/content/{NAME}", f"Bearer {KEY}")]


def test_a_server_that_does_not_answer_is_passed_over() -> None:
    asked: list[tuple[str, str]] = []
    with server(200, BODY, asked) as good:
        both = Peers([("http://127.0.0.1:1", KEY), ("no address", KEY), (good, KEY)])
        assert both.fetch(NAME) == BODY
        both.close()
