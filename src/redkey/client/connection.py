"""The connection of the sync client: performs the effects of flows, over links or a carrier."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from redkey.client.flow import Answer, Broken, Emit, Ended, Flow, Flowing, Open, Pause, Send, Steps, advance, call, take
from redkey.client.links import Links
from redkey.client.operation import Pages
from redkey.client.plain import find_address, plain_body
from redkey.client.policy import Policy
from redkey.client.request import Request
from redkey.client.settings import Settings
from redkey.shapes.tasks import Task

if TYPE_CHECKING:
    import ssl

    import httpx2

    from redkey.client.carrier import Carrier, Opened

T = TypeVar("T")


def find_certificates(settings: Settings) -> ssl.SSLContext | None:
    """Return the trusted certificates; None for plain HTTP, because loading them takes longer than many scripts run."""
    if not settings.base_url.startswith("https:"):
        return None
    from redkey.client.carrier import certificates

    return certificates()


class Connection:
    """Performs the effects of flows for one sync client. Threads may share it."""

    def __init__(self, settings: Settings, policy: Policy, transport: httpx2.BaseTransport | None = None) -> None:
        self.settings, self._policy, self._tls = settings, policy, find_certificates(settings)
        self._lock, self._is_closed = threading.Lock(), False
        self._carrier: Carrier | None = None
        self._links: Links | None = None
        if transport is not None:
            # The caller chose the transport of all requests.
            self._carrier = self._new_carrier(transport)
        elif (address := find_address(settings, self._tls)) is not None:
            self._links = Links(address, settings)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        if self._carrier is not None:
            self._carrier.close()
        if self._links is not None:
            self._links.close()

    def run(self, flow: Flow[T]) -> T:
        """Perform the effects of a flow until it has a result."""
        result_of_effect: Any = None
        while not isinstance(effect := advance(flow, result_of_effect), Ended):
            if isinstance(effect, Pause):
                time.sleep(effect.seconds)
                result_of_effect = None
            else:
                result_of_effect = self._send(effect)
        result: T = effect.value
        return result

    def emit(self, flow: Flow[None]) -> Emission[Any]:
        """Yield the values that a flow emits."""
        from redkey.client.carrier import Opened

        opened = Opened()
        return Emission(self._emit(flow, opened), opened)

    def _emit(self, flow: Flow[None], opened: Opened) -> Generator[Any, None, None]:
        result_of_effect: Any = None
        try:
            while not opened.is_cut.is_set():
                effect, result_of_effect = advance(flow, result_of_effect), None
                if isinstance(effect, Ended):
                    return
                if isinstance(effect, Emit):
                    yield effect.value
                elif isinstance(effect, Pause):
                    opened.close()
                    opened.is_cut.wait(effect.seconds)
                elif isinstance(effect, Open):
                    result_of_effect = self._get_carrier().open(effect.sending, opened)
                elif isinstance(effect, Send):
                    result_of_effect = self._send(effect)
                else:
                    result_of_effect = opened.read()
        finally:
            opened.close()

    def _send(self, sending: Send) -> Answer | Broken:
        if self._links is not None and (body := plain_body(sending)) is not None:
            return self._links.send(sending, body)
        return self._get_carrier().send(sending)

    def _get_carrier(self) -> Carrier:
        with self._lock:
            if self._carrier is None:
                if self._is_closed:
                    raise RuntimeError("the client has been closed")
                self._carrier = self._new_carrier(None)
            return self._carrier

    def _new_carrier(self, transport: httpx2.BaseTransport | None) -> Carrier:
        from redkey.client.carrier import Carrier

        return Carrier(self.settings, self._policy, self._tls, transport)


class Emission(Iterator[T]):
    """An open-ended sequence of values. Leave the loop to end it, or `close` it from any thread."""

    def __init__(self, values: Generator[T, None, None], opened: Opened) -> None:
        self._values, self._opened = values, opened

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return next(self._values)

    def cut(self) -> None:
        """End it from another thread; its reader gets the end of the stream."""
        self._opened.cut()

    def close(self) -> None:
        """End it: a reader that waits for the next value gets the end of the stream."""
        self._opened.cut()
        # A generator that another thread is running ends by itself once its stream is closed.
        with suppress(ValueError):
            self._values.close()


class SyncSender:
    """Sends the requests that resources build, with one policy."""

    def __init__(self, connection: Connection, policy: Policy) -> None:
        self.connection, self.policy = connection, policy

    def keyed(self, key: str) -> SyncSender:
        """Return a sender for one call that may be repeated under one key."""
        return SyncSender(self.connection, replace(self.policy, idempotency_key=key))

    def send(self, request: Request[T]) -> T:
        return self.connection.run(call(request, self.policy))

    def take(self, steps: Steps[T]) -> T:
        return self.connection.run(take(steps, self.policy))

    def pages(self, request: Request[Any]) -> Pages[Any]:
        return Pages(self.send, request)

    def stream(self, flowing: Flowing[T]) -> Emission[T]:
        return self.connection.emit(flowing.begin(self.policy))

    def wait(self, task_ids: Sequence[str], timeout: float | None) -> list[Task]:
        """Return the tasks once all of them have ended."""
        from redkey.client.endings import ended, in_order

        emission = self.stream(ended(task_ids))
        timer = threading.Timer(timeout, emission.cut) if timeout is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            return in_order(task_ids, list(emission), timeout)
        finally:
            if timer is not None:
                timer.cancel()
            emission.close()

    def result(self, task_id: str, timeout: float | None) -> Any:
        """Return the output of a task once the task has ended."""
        from redkey.client.endings import output_of

        return output_of(self.wait([task_id], timeout)[0])
