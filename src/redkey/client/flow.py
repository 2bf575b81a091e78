"""Flows: everything that a call takes, as generators without I/O.

A flow yields what it wants done (`Send`, `Pause`, `Open`, `Read`, `Emit`) and is told what came of it. The sync and the
async connection only do these things, so that retries, keys, cursors and resuming exist once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from redkey.client.policy import SILENCE_SECONDS, Policy
from redkey.client.problem import error_of
from redkey.client.request import EVENT_STREAM, Request
from redkey.client.sse import Parser
from redkey.errors import ClientError, ReplyRefused, TimedOut, Unreachable

T = TypeVar("T")
NAME = "redkey-python"


class Send(msgspec.Struct, frozen=True):
    """Send this and tell the whole answer: an `Answer` or `Broken`."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | Path | None
    silence_seconds: float
    # Without the key of the client.
    public: bool = False


class Open(msgspec.Struct, frozen=True):
    """Send this and tell how it was answered: `OPENED` for a success, else an `Answer` or `Broken`."""

    sending: Send


class Read(msgspec.Struct, frozen=True):
    """Tell the next piece of what is open: bytes, none at the end, or `Broken`."""


class Pause(msgspec.Struct, frozen=True):
    """Wait."""

    seconds: float


class Emit(msgspec.Struct, Generic[T], frozen=True):
    """Hand this to the caller."""

    value: T


class Answer(msgspec.Struct, frozen=True):
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Broken(msgspec.Struct, frozen=True):
    """Nothing whole came back."""

    reason: str
    timed_out: bool = False


class Ended(msgspec.Struct, Generic[T], frozen=True):
    """The flow is over, with this result."""

    value: T


OPENED = object()
Flow: TypeAlias = Generator[Any, Any, T]
# Several requests in order that are one operation to the caller.
Steps: TypeAlias = Generator[Request[Any], Any, T]


class Flowing(msgspec.Struct, Generic[T], frozen=True):
    """A flow that has not begun, and will hand on values of this type as it goes."""

    begin: Callable[[Policy], Flow[None]]


def advance(flow: Flow[T], told: Any) -> Any:
    """Tell a flow what came of its last effect: its next effect, or `Ended`."""
    try:
        return flow.send(told)
    except StopIteration as done:
        return Ended(done.value)


def call(request: Request[T], policy: Policy) -> Flow[T]:
    """One request, sent again as the policy allows, under one key: its reply, or the error that it ended in."""
    sending = _sending(request, policy)
    tries = 0
    while True:
        tries += 1
        found = yield sending
        if isinstance(found, Answer) and 200 <= found.status < 300:
            return request.read(found.body)
        yield _pause(found, request, policy, tries)


def take(steps: Steps[T], policy: Policy) -> Flow[T]:
    """Several requests, each built from the replies before it: the result of the last step."""
    go_on: Callable[[], Request[Any]] = partial(next, steps)
    while True:
        try:
            request = go_on()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            go_on = partial(steps.send, (yield from call(request, policy)))
        except ClientError as error:
            go_on = partial(steps.throw, error)


def follow(request: Request[T], policy: Policy) -> Flow[None]:
    """Events as they come, from where the last connection ended, until the caller has enough.

    Before the first event the policy's patience holds. A stream that was open once is taken up again however long
    that takes: whoever follows wants to know what comes next, and nothing is missed meanwhile.
    """
    cursor, tries, was_open = "", 0, False
    while True:
        found = yield Open(_sending(request, policy, cursor))
        if found is OPENED:
            was_open, parser = True, Parser()
            while isinstance(found := (yield Read()), bytes) and found:
                for message in parser.feed(found):
                    cursor, tries = message.id or cursor, 0
                    if message.data:
                        yield Emit(request.read(message.data.encode()))
            tries += 1
            yield Pause(policy.back_off_seconds(tries))
            continue
        tries += 1
        pause = _pause(found, request, policy, 1 if was_open else tries)
        yield Pause(max(pause.seconds, policy.back_off_seconds(tries))) if was_open else pause


def download(request: Request[bytes], digest: str, policy: Policy) -> Flow[None]:
    """A body in pieces; an error in place of its end when it is not what its hash promises."""
    tries = 0
    while True:
        tries += 1
        found = yield Open(_sending(request, policy))
        if found is OPENED:
            break
        yield _pause(found, request, policy, tries)
    seen = sha256()
    while isinstance(found := (yield Read()), bytes) and found:
        seen.update(found)
        yield Emit(found)
    if isinstance(found, Broken):
        raise _error(found, request, policy)
    if seen.hexdigest() != digest:
        raise ReplyRefused(f"the content that came does not have the SHA-256 {digest}", code="content_hash")


def _sending(request: Request[Any], policy: Policy, cursor: str = "") -> Send:
    headers = {"accept": request.accept, "user-agent": NAME}
    if request.body is not None:
        headers["content-type"] = request.media
    if request.keyed:
        headers["idempotency-key"] = policy.new_key()
    if cursor:
        headers["last-event-id"] = cursor
    headers.update(request.headers)
    streams = request.accept == EVENT_STREAM
    silence = SILENCE_SECONDS if streams else policy.timeout_seconds + request.wait_seconds
    return Send(request.method, request.path, request.query, headers, request.body, silence, request.public)


def _pause(found: Any, request: Request[Any], policy: Policy, tries: int) -> Pause:
    """The pause before another try; the error, when there is none."""
    error = _error(found, request, policy)
    seconds = policy.pause_seconds(tries, error)
    if seconds is None or _is_told_not_to(found):
        raise error
    return Pause(seconds)


def _error(found: Any, request: Request[Any], policy: Policy) -> ClientError:
    if isinstance(found, Broken):
        said = f"{request.method} {request.path}: {found.reason}"
        said = f"no answer from {policy.origin}: {said}" if policy.origin else said
        return TimedOut(said) if found.timed_out else Unreachable(said)
    return error_of(found.status, found.headers, found.body, policy.origin)


def _is_told_not_to(found: Any) -> bool:
    """Some answers say themselves that the same request will never succeed."""
    return isinstance(found, Answer) and found.headers.get("x-should-retry") == "false"
