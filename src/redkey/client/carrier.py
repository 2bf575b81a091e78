"""What httpx2 carries for the sync client: streams, large bodies, what goes by proxies or by a caller's transport.

It is loaded when it is first needed: that takes longer than most calls do.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2

from redkey.client.flow import OPENED, Answer, Broken, Send
from redkey.client.policy import CONNECT_SECONDS, Policy
from redkey.client.settings import Settings

PIECE_BYTES = 256 * 1024
# What a try may end in, on the way or while an answer is read.
FAILURES = (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError)


def certificates(settings: Settings) -> ssl.SSLContext:
    """Whom to trust, for this carrier and for links."""
    trusted = httpx2.create_ssl_context(trust_env=not settings.is_local)
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def client_options(settings: Settings, policy: Policy, tls: ssl.SSLContext | None) -> dict[str, Any]:
    """What both kinds of httpx2 clients are told."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
    # What stays on this machine does not go through a proxy that the environment names, nor does its key.
    return {
        "base_url": settings.base_url,
        "timeout": policy.timeout_seconds,
        "trust_env": not settings.is_local,
        "limits": limits,
        "verify": tls or False,
    }


def build_request(
    http: httpx2.Client | httpx2.AsyncClient, sending: Send, key: dict[str, str], pieces: Callable[[Path], Any]
) -> httpx2.Request:
    """A request of either kind of client; `key` is its authorization, `pieces` reads a file that is the body."""
    connect = min(CONNECT_SECONDS, sending.silence_seconds)
    return http.build_request(
        sending.method,
        sending.path,
        params=sending.query,
        headers={**sending.headers, **({} if sending.public else key)},
        content=pieces(sending.body) if isinstance(sending.body, Path) else sending.body,
        # How long each part of a try may be silent.
        timeout=httpx2.Timeout(sending.silence_seconds, connect=connect, pool=None),
    )


def broken(failure: Exception) -> Broken:
    """A failure on the way; its words never hold headers, and so no key."""
    timed_out = isinstance(failure, httpx2.TimeoutException)
    said = str(failure) or type(failure).__name__
    return Broken("no answer in time" if timed_out else said, timed_out)


class Carrier:
    """Sends over one httpx2 client. Threads may share it."""

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        tls: ssl.SSLContext | None,
        transport: httpx2.BaseTransport | None,
    ) -> None:
        options = client_options(settings, policy, tls)
        if transport is None and settings.uds is not None:
            transport = httpx2.HTTPTransport(uds=settings.uds, verify=False, limits=options["limits"])
        self._http = httpx2.Client(transport=transport, **options)
        self._key = {"authorization": f"Bearer {settings.api_key}"}

    def close(self) -> None:
        self._http.close()

    def send(self, sending: Send) -> Answer | Broken:
        try:
            found = self._http.send(self._build(sending))
        except FAILURES as failure:
            return broken(failure)
        return Answer(found.status_code, found.headers, found.content)

    def open(self, sending: Send, opened: Opened) -> Any:
        """Begin to read an answer: `OPENED` for a success, else an `Answer` or `Broken`."""
        opened.close()
        try:
            found = self._http.send(self._build(sending), stream=True)
            if found.is_success:
                opened.take(found)
                return OPENED
            try:
                return Answer(found.status_code, found.headers, found.read())
            finally:
                found.close()
        except FAILURES as failure:
            return broken(failure)

    def _build(self, sending: Send) -> httpx2.Request:
        return build_request(self._http, sending, self._key, _pieces)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


class Opened:
    """The answer that is being read, if any."""

    def __init__(self) -> None:
        self.is_cut = threading.Event()
        self._response: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def take(self, response: httpx2.Response) -> None:
        self._response, self._chunks = response, response.iter_bytes()

    def read(self) -> bytes | Broken:
        try:
            return next(self._chunks, b"")
        except FAILURES as failure:
            return broken(failure)

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        self._response, self._chunks = None, iter(())

    def cut(self) -> None:
        """From another thread: end what is being read, so that its reader wakes."""
        self.is_cut.set()
        response = self._response
        stream = response.extensions.get("network_stream") if response is not None else None
        found = stream.get_extra_info("socket") if stream is not None else None
        if isinstance(found, socket.socket):
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)
