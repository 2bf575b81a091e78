"""A proxy that serves another server below a prefix, as people put RedKey beside other pages."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit


@contextmanager
def prefixed(url: str, prefix: str) -> Iterator[str]:
    """Serve `url` below `prefix` on another port."""
    target = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _pass_on(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            onward = HTTPConnection(target.hostname or "", target.port, timeout=60)
            try:
                onward.request(self.command, self.path.removeprefix(prefix), body, dict(self.headers.items()))
                reply = onward.getresponse()
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                self.end_headers()
                while piece := reply.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (OSError, ValueError):
                # The browser or the server has gone.
                self.close_connection = True
            finally:
                onward.close()

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = _pass_on  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        host, port = socket.getnameinfo(server.server_address[:2], socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)
        yield f"http://{host}:{port}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
