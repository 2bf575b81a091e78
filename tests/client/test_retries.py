"""What may pass is sent again, after the right pause and under the same key; what will not is not."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from redkey.client import (
    ApiError,
    AsyncRedKey,
    Conflict,
    LeaseLost,
    RateLimited,
    RedKey,
    ReplyRefused,
    ServerFailed,
    TimedOut,
    Unreachable,
)
from redkey.client.flow import Answer, Broken, Pause, Send, call
from redkey.client.policy import Policy
from redkey.client.request import get, post
from redkey.shapes.queues import CreatedQueue
from redkey.shapes.server import Health
from tests.client.scripted import KEY, SILENCE, Scripted, answer, cut, scripted
from tests.harness.acts import until

QUEUE = b'{"queueId":"queue_a","name":"a","eventId":"evt_1"}'
BUSY = answer(503, b'{"code":"store_full","detail":"Full.","status":503}', retry_after="0")


def create(server: Scripted, mode: str, **options: Any) -> CreatedQueue:
    """One call that writes, by either client."""
    if mode == "sync":
        with RedKey(server.url, KEY, **options) as rk:
            return rk.queues.create("a")

    async def run() -> CreatedQueue:
        async with AsyncRedKey(server.url, KEY, **options) as rk:
            return await rk.queues.create("a")

    return asyncio.run(run())


both = pytest.mark.parametrize("mode", ["sync", "async"])


@both
def test_a_busy_server_is_asked_again_under_the_same_key(mode: str) -> None:
    with scripted(BUSY, BUSY, answer(201, QUEUE)) as server:
        assert create(server, mode).queue_id == "queue_a"
    [key] = set(server.header("idempotency-key"))
    assert key
    assert len(server.heard) == 3
    assert len({request.body for request in server.heard}) == 1


@both
def test_a_reply_that_is_cut_in_the_middle_is_asked_for_again_under_the_same_key(mode: str) -> None:
    with scripted(cut(answer(201, QUEUE)), answer(201, QUEUE)) as server:
        assert create(server, mode).event_id == "evt_1"
    assert len(set(server.header("idempotency-key"))) == 1


@both
def test_a_silent_server_is_given_up_in_time(mode: str) -> None:
    with scripted(SILENCE, SILENCE) as server:
        with pytest.raises(TimedOut) as failed:
            create(server, mode, timeout=0.2, max_retries=1)
        # On a busy machine the server may read what was sent after its caller has gone.
        until(lambda: len(server.heard) == 2)
    assert failed.value.code == "timed_out"
    assert len(server.heard) == 2


@both
def test_two_calls_have_two_keys(mode: str) -> None:
    with scripted(answer(201, QUEUE), answer(201, QUEUE)) as server:
        create(server, mode)
        create(server, mode)
    assert len(set(server.header("idempotency-key"))) == 2


def test_a_key_that_is_given_is_the_key_that_is_sent() -> None:
    with scripted(BUSY, answer(201, QUEUE)) as server, RedKey(server.url, KEY) as rk:
        rk.with_options(idempotency_key="order-7").queues.create("a")
    assert server.header("idempotency-key") == ["order-7", "order-7"]


def test_reads_carry_no_key() -> None:
    with scripted(answer(200, QUEUE)) as server, RedKey(server.url, KEY) as rk, pytest.raises(ReplyRefused):
        rk.queues.get("a")
    assert server.header("idempotency-key") == [""]


def test_nobody_who_listens_is_an_error_that_says_so() -> None:
    # Bound but not listening: connecting is refused, and no other process can listen on the port meanwhile.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with RedKey(url, KEY, max_retries=1) as rk, pytest.raises(Unreachable) as failed:
            rk.server.health()
    assert failed.value.code == "unreachable"
    assert "/healthz" in failed.value.message


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (answer(409, b'{"code":"lease_lost","detail":"Gone.","status":409}'), LeaseLost, "lease_lost"),
        (answer(409, b'{"code":"queue_exists","detail":"There.","status":409}'), Conflict, "queue_exists"),
        (answer(418, b"<html>"), ApiError, "http_418"),
        (answer(500, b"<html>", x_should_retry="false"), ServerFailed, "http_500"),
        (answer(302, b"", location="http://elsewhere.example/"), ApiError, "http_302"),
    ],
)
def test_what_will_not_pass_is_not_sent_again(reply: bytes, kind: type[ApiError], code: str) -> None:
    with scripted(reply) as server, RedKey(server.url, KEY) as rk, pytest.raises(kind) as failed:
        rk.queues.create("a")
    assert failed.value.code == code
    assert type(failed.value) is kind
    assert len(server.heard) == 1


def test_a_problem_tells_all_of_itself() -> None:
    problem = (
        b'{"type":"/docs#422","title":"Unprocessable","status":422,"code":"invalid","detail":"2 things are wrong",'
        b'"advice":"Mend it.","errors":[{"code":"too_short","pointer":"/name","message":"is short"}]}'
    )
    reply = answer(422, problem, x_request_id="req-9")
    with scripted(reply) as server, RedKey(server.url, KEY) as rk, pytest.raises(ApiError) as failed:
        rk.queues.create("")
    error = failed.value
    assert (error.status, error.code, error.detail) == (422, "invalid", "2 things are wrong")
    assert (error.advice, error.request_id) == ("Mend it.", "req-9")
    assert [(one.code, one.pointer) for one in error.findings()] == [("too_short", "/name")]
    assert str(error) == "2 things are wrong. Mend it.\n  /name: is short [too_short]"


# The same without sockets: a flow is asked what it wants, and told what came of it.


def pauses(*answers: Answer | Broken, policy: Policy) -> tuple[list[float], BaseException | Any]:
    """The pauses that a call makes between these answers, and what it ends in."""
    flow, waited, told = call(get("/healthz", Health), policy), [], iter(answers)
    effect: Any = next(flow)
    try:
        while True:
            if isinstance(effect, Pause):
                waited.append(effect.seconds)
                effect = flow.send(None)
            else:
                assert isinstance(effect, Send)
                effect = flow.send(next(told))
    except StopIteration as ended:
        return waited, ended.value
    except ApiError as error:
        return waited, error
    except Unreachable as error:
        return waited, error


def busy(after: str = "") -> Answer:
    return Answer(503, {"retry-after": after} if after else {}, b"{}")


OK = Answer(200, {}, b'{"status":"ok"}')


def test_the_server_says_how_long_to_wait() -> None:
    waited, reply = pauses(busy("2"), busy("0"), OK, policy=Policy(chance=lambda: 0.0))
    assert waited == [2.0, 0.0]
    assert reply == Health(status="ok")


def test_those_who_were_sent_away_together_do_not_come_back_together() -> None:
    late, _ = pauses(busy("30"), OK, policy=Policy(chance=lambda: 0.999))
    soon, _ = pauses(busy("30"), OK, policy=Policy(chance=lambda: 0.0))
    assert soon[0] == 30.0
    assert 30.0 < late[0] <= 33.0


def test_a_date_is_as_good_as_seconds() -> None:
    waited, _ = pauses(busy("Thu, 01 Jan 1970 00:00:00 GMT"), OK, policy=Policy(chance=lambda: 0.0))
    assert waited == [0.0]


def test_a_wait_that_is_too_long_is_left_to_the_caller() -> None:
    waited, error = pauses(Answer(429, {"retry-after": "3600"}, b"{}"), policy=Policy())
    assert waited == []
    assert isinstance(error, RateLimited)
    assert error.retry_after_seconds == 3600.0


def test_back_off_doubles_and_half_of_it_is_chance() -> None:
    least, error = pauses(*[Broken("gone")] * 6, policy=Policy(max_retries=5, chance=lambda: 0.0))
    most, _ = pauses(*[Broken("gone")] * 6, policy=Policy(max_retries=5, chance=lambda: 1.0))
    assert least == [0.125, 0.25, 0.5, 1.0, 2.0]
    assert most == [2 * one for one in least]
    assert isinstance(error, Unreachable)
    assert Policy(chance=lambda: 1.0).back_off_seconds(1000) == 8.0


def test_a_key_is_drawn_once_for_all_tries() -> None:
    flow = call(post("/queues", CreatedQueue, name="a"), Policy())
    first = next(flow)
    assert isinstance(flow.send(Broken("gone")), Pause)
    assert flow.send(None) is first
