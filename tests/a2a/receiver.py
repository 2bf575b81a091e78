"""A receiver of webhooks and push notifications: a real HTTP server on the loopback that keeps what it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Got:
    """One request."""

    def __init__(self, headers: dict[str, str], body: bytes) -> None:
        self.headers, self.body = headers, body
        self.json: Any = json.loads(body)


class Receiver:
    """What came, in order; `status` is what it answers."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.refused = 0
        self.status = 204
        self.url = ""
        # The request with this number is taken, but not answered before `release`.
        self.hold_at = 0
        self._came = threading.Condition()

    def take(self, got: Got) -> int:
        with self._came:
            status = self.status
            if status < 300:
                self.got.append(got)
            else:
                self.refused += 1
            self._came.notify_all()
            number = len(self.got)
            if number and number == self.hold_at:
                self._came.wait_for(lambda: self.hold_at != number, 60)
        return status

    def release(self, until: int = 0) -> None:
        """Answer the request that is held; hold the one with the number `until`."""
        with self._came:
            self.hold_at = until
            self._came.notify_all()

    def wait(self, count: int, *, refused: bool = False) -> list[Got]:
        """The first requests, once so many have come."""
        with self._came:
            came = self._came.wait_for(lambda: (self.refused if refused else len(self.got)) >= count, 60)
            assert came, f"{len(self.got)} requests came, {self.refused} were refused"
            return list(self.got)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver for the length of a block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.take(Got({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/in"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
