"""The transport of the sync client over httpx2: for streams, large bodies, proxies and a transport of the caller.

It is imported on first use, because importing it takes longer than most calls.
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
# The errors of a try, while it is sent or while the answer is read.
FAILURES = (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError)


def certificates() -> ssl.SSLContext:
    """Return the trusted certificates for carrier and links: the usual authorities, or those of SSL_CERT_FILE."""
    trusted = httpx2.create_ssl_context()
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def client_options(
    settings: Settings,
    policy: Policy,
    tls: ssl.SSLContext | None,
    given: object,
    over_socket: Callable[..., object],
) -> dict[str, Any]:
    """Return the options of both kinds of httpx2 clients. Their transport is the given one, or one over the socket."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
    transport = given
    if given is None and settings.uds is not None:
        transport = over_socket(uds=settings.uds, verify=False, limits=limits)
    # Requests to this machine, and their key, do not go through a proxy that the environment names.
    return {
        "base_url": settings.base_url,
        "timeout": policy.timeout_seconds,
        "trust_env": not settings.is_local,
        "limits": limits,
        "verify": tls or False,
        "transport": transport,
    }


def build_request(
    http: httpx2.Client | httpx2.AsyncClient, sending: Send, settings: Settings, pieces: Callable[[Path], Any]
) -> httpx2.Request:
    """Build a request for either client, with the authorization of `settings`; `pieces` reads a file body."""
    connect = min(CONNECT_SECONDS, sending.silence_seconds)
    return http.build_request(
        sending.method,
        sending.path,
        params=sending.query,
        headers={**sending.headers, **({} if sending.public else {"authorization": f"Bearer {settings.bearer}"})},
        content=pieces(sending.body) if isinstance(sending.body, Path) else sending.body,
        # The longest silence in each part of a try.
        timeout=httpx2.Timeout(sending.silence_seconds, connect=connect, pool=None),
    )


def broken(failure: Exception) -> Broken:
    """Describe a network failure; the text never contains headers, and so no key."""
    timed_out = isinstance(failure, httpx2.TimeoutException)
    reason = str(failure) or type(failure).__name__
    return Broken("no answer in time" if timed_out else reason, timed_out)


class Carrier:
    """Sends requests over one httpx2 client. Threads may share it."""

    def __init__(
        self, settings: Settings, policy: Policy, tls: ssl.SSLContext | None, transport: httpx2.BaseTransport | None
    ) -> None:
        self._http = httpx2.Client(**client_options(settings, policy, tls, transport, httpx2.HTTPTransport))
        self._settings = settings

    def close(self) -> None:
        self._http.close()

    def send(self, sending: Send) -> Answer | Broken:
        try:
            response = self._http.send(self._build(sending))
        except FAILURES as failure:
            return broken(failure)
        return Answer(response.status_code, response.headers, response.content)

    def open(self, sending: Send, opened: Opened) -> Any:
        """Start to read a response: return `OPENED` for a success, otherwise an `Answer` or `Broken`."""
        opened.close()
        try:
            response = self._http.send(self._build(sending), stream=True)
            if response.is_success:
                opened.take(response)
                return OPENED
            try:
                return Answer(response.status_code, response.headers, response.read())
            finally:
                response.close()
        except FAILURES as failure:
            return broken(failure)

    def _build(self, sending: Send) -> httpx2.Request:
        return build_request(self._http, sending, self._settings, _pieces)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


class Opened:
    """The streamed response that is being read, if any."""

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
        """End the stream from another thread, which wakes its reader."""
        self.is_cut.set()
        response = self._response
        stream = response.extensions.get("network_stream") if response is not None else None
        connection_socket = stream.get_extra_info("socket") if stream is not None else None
        if isinstance(connection_socket, socket.socket):
            with suppress(OSError):
                connection_socket.shutdown(socket.SHUT_RDWR)
