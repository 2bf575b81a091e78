"""Plain requests as bytes, without I/O: where they go, how one is written and how its answer is read, in HTTP/1.1.

A request is plain when its body is small and its answer is wanted whole: nearly every call is. `links` and
`async_links` carry them. Streams, large bodies, proxies and the transports that callers bring are left to httpx2.
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

# Larger bodies wait for the other side while they are written, which is httpx2's business.
LARGEST_BODY_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}
# Names and paths that need no encoding.
_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z.-]+)(?::([0-9]+))?((?:/[\w.~-]+)*)", re.ASCII)


class Address(msgspec.Struct, frozen=True):
    """Where plain requests go."""

    host: str
    port: int
    uds: str | None
    tls: ssl.SSLContext | None
    # What the Host header says, and what stands before every path.
    authority: str
    prefix: str


def find_address(settings: Settings, tls: ssl.SSLContext | None) -> Address | None:
    """Where plain requests go; None when only httpx2 knows the way."""
    found = _URL.fullmatch(settings.base_url)
    if found is None or not (settings.is_local or _is_direct()):
        return None
    scheme, host, port, prefix = found.groups(default="")
    given = int(port) if port else _PORTS[scheme]
    authority = host if given == _PORTS[scheme] else f"{host}:{given}"
    return Address(host.strip("[]"), given, settings.uds, tls, authority, prefix)


def _is_direct() -> bool:
    """Whether the environment names no proxy at all; for whom it is, httpx2 finds out."""
    from urllib.request import getproxies

    return not getproxies().keys() & {"http", "https", "all"}


def plain_body(sending: Send) -> bytes | None:
    """The body of a plain request; None when the request is not plain."""
    body = sending.body or b""
    return body if isinstance(body, bytes) and len(body) <= LARGEST_BODY_BYTES else None


class Writer:
    """Writes requests to one address. The key is added here, last of all."""

    def __init__(self, address: Address, api_key: str) -> None:
        self._prefix = address.prefix
        self._public = f"host: {address.authority}\r\naccept-encoding: gzip\r\n"
        self._own = f"{self._public}authorization: Bearer {api_key}\r\n"

    def write(self, sending: Send, body: bytes) -> bytes:
        target = self._prefix + sending.path
        if sending.query:
            target += "?" + urlencode(sending.query)
        if not ("".join(sending.headers.values()) + target).isprintable():
            raise ValueError("a header or a path with control characters")
        said = "".join([f"{name}: {value}\r\n" for name, value in sending.headers.items()])
        whose = self._public if sending.public else self._own
        length = f"content-length: {len(body)}\r\n" if body or sending.method != "GET" else ""
        return f"{sending.method} {target} HTTP/1.1\r\n{said}{whose}{length}\r\n".encode("ascii") + body


class Reader:
    """Reads the answers of one connection, each from the pieces in which it comes."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        # Nothing until the head has come.
        self._status = 0
        self._is_whole = False
        # Whether the connection may be used again after the answer.
        self.keeps_open = False

    def feed(self, data: bytes) -> Answer | None:
        """The answer, when this is the last piece of it. ConnectionError for what is no answer."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.keeps_open = False
            if not self._is_whole:
                raise ConnectionError("what came is not an answer in HTTP/1.1") from None
        return self._answer() if self._is_whole else None

    def end(self) -> Answer:
        """The answer that ends with its connection. ConnectionError when there is more to come, or nothing came."""
        self.keeps_open = False
        if self._status < 200 or self._headers.keys() & {"content-length", "transfer-encoding"}:
            raise ConnectionError("the connection ended before the answer")
        return self._answer()

    def _answer(self) -> Answer:
        answer = Answer(self._status, self._headers, b"".join(self._pieces))
        # Nothing has come of the next one.
        self._status, self._is_whole = 0, False
        return answer if answer.headers.get("content-encoding") != "gzip" else _unpacked(answer)

    # What the parser tells.

    def on_message_begin(self) -> None:
        if self._is_whole:
            raise ValueError("more came than was asked for")
        self._headers, self._pieces, self._status = {}, [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        # 100 and its like only announce the answer.
        self._is_whole = self._status >= 200
        self.keeps_open = self._parser.should_keep_alive()


def _unpacked(answer: Answer) -> Answer:
    # Proxies pack; the server does not.
    import gzip
    import zlib

    try:
        return Answer(answer.status, answer.headers, gzip.decompress(answer.body))
    except (OSError, EOFError, zlib.error):
        raise ConnectionError("the answer cannot be unpacked") from None
