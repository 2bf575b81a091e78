"""The connection of the sync client: does what flows ask for, plain requests by links and the rest over httpx2."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from redkey.client.flow import OPENED, Answer, Broken, Emit, Flow, Flowing, Open, Pause, Send, call
from redkey.client.links import Links
from redkey.client.operation import Pages, Steps
from redkey.client.plain import Address, find_address, plain_body
from redkey.client.policy import CONNECT_SECONDS, Policy
from redkey.client.request import Request
from redkey.client.settings import Settings
from redkey.errors import ClientError

T = TypeVar("T")
PIECE_BYTES = 256 * 1024


def client_options(settings: Settings, policy: Policy) -> dict[str, Any]:
    """What both kinds of httpx2 clients are told."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
    # What stays on this machine does not go through a proxy that the environment names, nor does its key.
    return {
        "base_url": settings.base_url,
        "timeout": policy.timeout_seconds,
        "trust_env": not settings.is_local,
        "limits": limits,
        "verify": certificates(settings) or False,
    }


def certificates(settings: Settings) -> ssl.SSLContext | None:
    """Whom to trust; plain HTTP needs no certificates, and to load them takes longer than many a script."""
    if not settings.base_url.startswith("https:"):
        return None
    trusted = httpx2.create_ssl_context(trust_env=not settings.is_local)
    trusted.set_alpn_protocols(["http/1.1"])
    return trusted


def plain_address(settings: Settings, options: dict[str, Any], transport: object) -> Address | None:
    """Where plain requests go without httpx2; None when the caller chose how anything goes, or it is the only way."""
    return find_address(settings, options["verify"] or None) if transport is None else None


def timeout(sending: Send) -> httpx2.Timeout:
    """How long each part of a try may be silent."""
    return httpx2.Timeout(sending.silence_seconds, connect=min(CONNECT_SECONDS, sending.silence_seconds), pool=None)


def broken(failure: Exception) -> Broken:
    """A failure on the way; its words never hold headers, and so no key."""
    timed_out = isinstance(failure, httpx2.TimeoutException)
    said = str(failure) or type(failure).__name__
    return Broken("no answer in time" if timed_out else said, timed_out)


class Connection:
    """Sends, waits and reads for one sync client. Threads may share it."""

    def __init__(self, settings: Settings, policy: Policy, transport: httpx2.BaseTransport | None = None) -> None:
        options = client_options(settings, policy)
        address = plain_address(settings, options, transport)
        self._links = Links(address, settings.api_key) if address is not None else None
        if transport is None and settings.uds is not None:
            transport = httpx2.HTTPTransport(uds=settings.uds, verify=False, limits=options["limits"])
        self.settings = settings
        self._http = httpx2.Client(transport=transport, **options)
        self._key = {"authorization": f"Bearer {settings.api_key}"}

    def close(self) -> None:
        self._http.close()
        if self._links is not None:
            self._links.close()

    def run(self, flow: Flow[T]) -> T:
        """Do what a flow asks for until it has its result."""
        told: Any = None
        while True:
            try:
                effect = flow.send(told)
            except StopIteration as done:
                result: T = done.value
                return result
            if isinstance(effect, Pause):
                time.sleep(effect.seconds)
                told = None
            else:
                told = self._send(effect)

    def emit(self, flow: Flow[None]) -> Emission[Any]:
        """What a flow hands on, as it comes."""
        opened = _Opened()
        return Emission(self._emit(flow, opened), opened)

    def _emit(self, flow: Flow[None], opened: _Opened) -> Generator[Any, None, None]:
        told: Any = None
        try:
            while not opened.is_cut.is_set():
                try:
                    effect = flow.send(told)
                except StopIteration:
                    return
                told = None
                if isinstance(effect, Emit):
                    yield effect.value
                elif isinstance(effect, Pause):
                    opened.close()
                    opened.is_cut.wait(effect.seconds)
                elif isinstance(effect, Open):
                    told = self._open(effect.sending, opened)
                else:
                    told = opened.read()
        finally:
            opened.close()

    def _request(self, sending: Send) -> httpx2.Request:
        return self._http.build_request(
            sending.method,
            sending.path,
            params=sending.query,
            headers={**sending.headers, **({} if sending.public else self._key)},
            content=_pieces(sending.body) if isinstance(sending.body, Path) else sending.body,
            timeout=timeout(sending),
        )

    def _send(self, sending: Send) -> Answer | Broken:
        if self._links is not None and (body := plain_body(sending)) is not None:
            return self._links.send(sending, body)
        try:
            found = self._http.send(self._request(sending))
        except (httpx2.TransportError, httpx2.DecodingError) as failure:
            return broken(failure)
        return Answer(found.status_code, found.headers, found.content)

    def _open(self, sending: Send, opened: _Opened) -> Any:
        opened.close()
        try:
            found = self._http.send(self._request(sending), stream=True)
            if found.is_success:
                opened.take(found)
                return OPENED
            try:
                return Answer(found.status_code, found.headers, found.read())
            finally:
                found.close()
        except (httpx2.TransportError, httpx2.DecodingError) as failure:
            return broken(failure)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


class _Opened:
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
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError) as failure:
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


class Emission(Iterator[T]):
    """What goes on coming. Leave the loop to end it, or `close` it, from whatever thread."""

    def __init__(self, values: Generator[T, None, None], opened: _Opened) -> None:
        self._values, self._opened = values, opened

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._values)

    def close(self) -> None:
        """End it: whoever waits for the next value gets the end."""
        self._opened.cut()
        # A generator that another thread is in ends by itself, once it is cut.
        with suppress(ValueError):
            self._values.close()


class SyncSender:
    """Sends what resources build, by one policy."""

    def __init__(self, connection: Connection, policy: Policy) -> None:
        self.connection, self.policy = connection, policy

    def keyed(self, key: str) -> SyncSender:
        """The same sender for one call that may have to be made several times, under one key."""
        return SyncSender(self.connection, replace(self.policy, idempotency_key=key))

    def send(self, request: Request[T]) -> T:
        return self.connection.run(call(request, self.policy))

    def take(self, steps: Steps[T]) -> T:
        go_on: Callable[[], Request[Any]] = partial(next, steps)
        while True:
            try:
                request = go_on()
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                go_on = partial(steps.send, self.send(request))
            except ClientError as error:
                go_on = partial(steps.throw, error)

    def pages(self, request: Request[Any]) -> Pages[Any]:
        return Pages(self.send, request)

    def stream(self, flowing: Flowing[T]) -> Emission[T]:
        return self.connection.emit(flowing.begin(self.policy))
