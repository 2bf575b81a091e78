"""Plain requests as HTTP/1.1 bytes, without I/O: which requests are plain, how to write them and how to read answers.

A request is plain if its body is small and its answer is read whole; nearly every call is. `links` and `async_links`
send them. Streams, large bodies, proxies and transports of callers are left to httpx2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httptools
import msgspec

from redkey.client.flow import Answer, Send
from redkey.client.settings import Settings

if TYPE_CHECKING:
    import ssl

# While a larger body is written, the client has to watch for an early answer, which httpx2 can do.
LARGEST_BODY_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}
# Names and paths that need no percent-encoding.
_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(?::([0-9]+))?((?:/[\w.~-]+)*)", re.ASCII)


class Address(msgspec.Struct, frozen=True):
    """The address that plain requests go to."""

    host: str
    port: int
    uds: str | None
    tls: ssl.SSLContext | None
    # The Host header, and the prefix of every path.
    authority: str
    prefix: str


def find_address(settings: Settings, tls: ssl.SSLContext | None) -> Address | None:
    """Return the address for plain requests; None if only httpx2 can reach the server."""
    match = _URL.fullmatch(settings.base_url)
    if match is None or not (settings.is_local or _is_direct()):
        return None
    scheme, host, port, prefix = match.groups(default="")
    port_number = int(port) if port else _PORTS[scheme]
    authority = host if port_number == _PORTS[scheme] else f"{host}:{port_number}"
    return Address(host.strip("[]"), port_number, settings.uds, tls, authority, prefix)


def _is_direct() -> bool:
    """Whether the environment names no proxy. If it does, httpx2 decides which hosts it applies to."""
    from urllib.request import getproxies

    return not getproxies().keys() & {"http", "https", "all"}


def plain_body(sending: Send) -> bytes | None:
    """Return the body of a plain request; None if the request is not plain."""
    body = sending.body or b""
    return body if isinstance(body, bytes) and len(body) <= LARGEST_BODY_BYTES else None


class Writer:
    """Writes requests to one address, and adds the key as the last step."""

    def __init__(self, address: Address, settings: Settings) -> None:
        self._settings = settings
        self._prefix = address.prefix
        self._public = f"host: {address.authority}\r\naccept-encoding: gzip\r\n"
        # A key never changes, but the token of a login is renewed.
        self._own = self._with(settings.api_key) if settings.login is None else ""

    def write(self, sending: Send, body: bytes) -> bytes:
        target = self._prefix + sending.path
        if sending.query:
            target += "?" + urlencode(sending.query)
        if not ("".join(sending.headers.values()) + target).isprintable():
            raise ValueError("a header or a path with control characters")
        header_lines = "".join([f"{name}: {value}\r\n" for name, value in sending.headers.items()])
        whose = self._public if sending.public else self._own or self._with(self._settings.bearer)
        length = f"content-length: {len(body)}\r\n" if body or sending.method != "GET" else ""
        return f"{sending.method} {target} HTTP/1.1\r\n{header_lines}{whose}{length}\r\n".encode("ascii") + body

    def _with(self, bearer: str) -> str:
        return f"{self._public}authorization: Bearer {bearer}\r\n"


class Reader:
    """Reads the answers of one connection from the chunks that arrive."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        # None until the head of the answer is complete.
        self._status = 0
        self._is_whole = False
        # Whether the connection can be reused after the answer.
        self.keeps_open = False

    def feed(self, data: bytes) -> Answer | None:
        """Return the answer if this chunk completes it; ConnectionError for invalid HTTP."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.keeps_open = False
            if not self._is_whole:
                raise ConnectionError("the answer is not valid HTTP/1.1") from None
        return self._answer() if self._is_whole else None

    def end(self) -> Answer:
        """Return an answer that ends with the connection; ConnectionError if it is incomplete or empty."""
        self.keeps_open = False
        if self._status < 200 or self._headers.keys() & {"content-length", "transfer-encoding"}:
            raise ConnectionError("the connection ended before the answer")
        return self._answer()

    def _answer(self) -> Answer:
        answer = Answer(self._status, self._headers, b"".join(self._pieces))
        # No part of the next answer has arrived.
        self._status, self._is_whole = 0, False
        return answer if answer.headers.get("content-encoding") != "gzip" else _unpacked(answer)

    # The callbacks of the parser.

    def on_message_begin(self) -> None:
        if self._is_whole:
            raise ValueError("the server sent more than the answer to the request")
        self._headers, self._pieces, self._status = {}, [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        # 1xx statuses only announce the answer.
        self._is_whole = self._status >= 200
        self.keeps_open = self._parser.should_keep_alive()


def _unpacked(answer: Answer) -> Answer:
    # Proxies compress; the server does not.
    import gzip
    import zlib

    try:
        return Answer(answer.status, answer.headers, gzip.decompress(answer.body))
    except (OSError, EOFError, zlib.error):
        raise ConnectionError("the answer cannot be decompressed") from None
