"""Flows: the logic of every call, as generators without I/O.

A flow yields effects (`Send`, `Pause`, `Open`, `Read`, `Emit`) and is resumed with their results. The sync and the
async connection only perform these effects, so retries, keys, cursors and resuming are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
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
    """Send this and return the whole answer: an `Answer` or `Broken`."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | Path | None
    silence_seconds: float
    # Send without the client's key.
    public: bool = False


class Open(msgspec.Struct, frozen=True):
    """Send this and return how it was answered: `OPENED` for a success, otherwise an `Answer` or `Broken`."""

    sending: Send


class Read(msgspec.Struct, frozen=True):
    """Return the next piece of the open stream: bytes, empty at the end, or `Broken`."""


class Pause(msgspec.Struct, frozen=True):
    """A step of a call: wait this long before the next one."""

    seconds: float


class Emit(msgspec.Struct, Generic[T], frozen=True):
    """Yield this value to the caller."""

    value: T


class Answer(msgspec.Struct, frozen=True):
    """A whole response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Broken(msgspec.Struct, frozen=True):
    """The network failed before a whole response arrived."""

    reason: str
    timed_out: bool = False


class Ended(msgspec.Struct, Generic[T], frozen=True):
    """The flow is over, with this result."""

    value: T


OPENED = object()
Flow: TypeAlias = Generator[Any, Any, T]
# Several requests in order that are one operation for the caller.
Steps: TypeAlias = Generator[Request[Any], Any, T]


class Flowing(msgspec.Struct, Generic[T], frozen=True):
    """A flow that has not started and yields values of this type."""

    begin: Callable[[Policy], Flow[None]]


def advance(flow: Flow[T], result_of_effect: Any) -> Any:
    """Resume a flow with the result of its last effect; return its next effect, or `Ended`."""
    try:
        return flow.send(result_of_effect)
    except StopIteration as done:
        return Ended(done.value)


def call(request: Request[T], policy: Policy) -> Flow[T]:
    """Send one request, retried under one key as the policy allows; return its reply or raise its last error."""
    sending = _sending(request, policy)
    tries = 0
    while True:
        tries += 1
        answer = yield sending
        if isinstance(answer, Answer) and 200 <= answer.status < 300:
            return request.read(answer.body)
        yield _pause(answer, request, policy, tries)


def take(steps: Steps[T], policy: Policy) -> Flow[T]:
    """Send several requests, each built from the replies before it; return the result of the last step."""
    go_on: Callable[[], Request[Any]] = partial(next, steps)
    key_of_call, number = policy.idempotency_key, 0
    while True:
        try:
            request = go_on()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            if key_of_call and request.keyed:
                # A key belongs to one request: the later requests append their number to it.
                number += 1
                policy = replace(
                    policy, idempotency_key=key_of_call if number == 1 else f"{key_of_call[:250]}-{number}"
                )
            go_on = partial(steps.send, (yield from call(request, policy)))
        except ClientError as error:
            go_on = partial(steps.throw, error)


def follow(request: Request[T], policy: Policy) -> Flow[None]:
    """Yield events as they come, resuming after a lost connection, until the caller stops.

    Before the first event, the policy limits the retries. A stream that was open once is reconnected without a limit:
    the caller wants to know what comes next, and no event is missed meanwhile.
    """
    cursor, tries, was_open = "", 0, False
    while True:
        answer = yield Open(_sending(request, policy, cursor))
        if answer is OPENED:
            was_open, parser = True, Parser()
            while isinstance(answer := (yield Read()), bytes) and answer:
                for message in parser.feed(answer):
                    cursor, tries = message.id or cursor, 0
                    if message.data:
                        yield Emit(request.read(message.data.encode()))
            tries += 1
            yield Pause(policy.back_off_seconds(tries))
            continue
        tries += 1
        pause = _pause(answer, request, policy, 1 if was_open else tries)
        yield Pause(max(pause.seconds, policy.back_off_seconds(tries))) if was_open else pause


def download(request: Request[bytes], digest: str, policy: Policy) -> Flow[None]:
    """Yield a body in pieces; raise an error at the end if its hash is not the expected one."""
    tries = 0
    while True:
        tries += 1
        answer = yield Open(_sending(request, policy))
        if answer is OPENED:
            break
        yield _pause(answer, request, policy, tries)
    seen = sha256()
    while isinstance(answer := (yield Read()), bytes) and answer:
        seen.update(answer)
        yield Emit(answer)
    if isinstance(answer, Broken):
        raise _error(answer, request, policy)
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


def _pause(answer: Any, request: Request[Any], policy: Policy, tries: int) -> Pause:
    """Return the pause before the next try; raise the error if there is no next try."""
    error = _error(answer, request, policy)
    seconds = policy.pause_seconds(tries, error)
    if seconds is None or _forbids_retry(answer):
        raise error
    return Pause(seconds)


def _error(answer: Any, request: Request[Any], policy: Policy) -> ClientError:
    if isinstance(answer, Broken):
        reason = f"{request.method} {request.path}: {answer.reason}"
        reason = f"no answer from {policy.origin}: {reason}" if policy.origin else reason
        return TimedOut(reason) if answer.timed_out else Unreachable(reason)
    return error_of(answer.status, answer.headers, answer.body, policy.origin)


def _forbids_retry(answer: Any) -> bool:
    """Whether the answer itself says that the same request will never succeed."""
    return isinstance(answer, Answer) and answer.headers.get("x-should-retry") == "false"
