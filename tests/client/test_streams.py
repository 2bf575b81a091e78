"""Streams resume where they ended: nothing is missed, nothing comes twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.client import AsyncRedKey, Event, Invalid, RedKey, ReplyRefused
from redkey.client.connection import Emission
from redkey.client.sse import Message, Parser
from tests.client.conftest import Place
from tests.client.scripted import KEY, answer, block, events, scripted
from tests.harness.ports import lasting_port
from tests.harness.server import Server

both = pytest.mark.parametrize("mode", ["sync", "async"])


def take(url: str, mode: str, count: int, **options: Any) -> list[Event]:
    """The first events of a stream, by either client."""
    if mode == "sync":
        with RedKey(url, KEY) as rk:
            stream = rk.events.follow(**options)
            return [next(stream) for _ in range(count)]

    async def run() -> list[Event]:
        found: list[Event] = []
        async with AsyncRedKey(url, KEY) as rk:
            stream = rk.events.follow(**options)
            while len(found) < count:
                found.append(await anext(stream))
            await stream.aclose()
        return found

    return asyncio.run(run())


@both
def test_a_stream_that_is_cut_goes_on_after_the_last_id(mode: str) -> None:
    with scripted(
        events("retry: 1000\nid: 3\n\n", block(4), block(5)),
        # A bare cursor moves the place too; half an event counts for nothing.
        events(block(7), "id: 9\n\n", block(10)[:20]),
        answer(503, b"{}", retry_after="0"),
        events(block(12)),
    ) as server:
        found = take(server.url, mode, 4, types=["task.available"], queue="podcast")
    assert [event.sequence for event in found] == [4, 5, 7, 12]
    assert server.header("last-event-id") == ["", "5", "9", "9"]
    assert "types=task.available" in server.heard[0].line
    assert "queueId=podcast" in server.heard[0].line


@both
def test_a_stream_that_is_refused_is_an_error(mode: str) -> None:
    refused = answer(422, b'{"code":"cursor_beyond_head","detail":"Not yet.","status":422}')
    with scripted(refused) as server, pytest.raises(Invalid) as failed:
        take(server.url, mode, 1, after=99)
    assert failed.value.code == "cursor_beyond_head"
    assert len(server.heard) == 1


def test_what_is_no_event_is_refused() -> None:
    with scripted(events("id: 1\ndata: {}\n\n")) as server, pytest.raises(ReplyRefused):
        take(server.url, "sync", 1)


def test_a_follower_outlives_a_restart_of_the_server(start: Callable[..., Server]) -> None:
    server = start("--port", str(lasting_port()))
    with RedKey(server.url, server.key) as rk:
        rk.queues.create("podcast")
        stream = rk.events.follow(types="task.created", after=0)
        rk.tasks.create("podcast", title="Before")
        first = next(stream)
        server.stop()
        again = start("--port", server.url.rpartition(":")[2])
        rk.tasks.create("podcast", title="After")
        assert next(stream).sequence > first.sequence
        stream.close()
        again.stop()


def test_a_stream_can_be_ended_by_another_thread(rk: RedKey) -> None:
    stream: Emission[Event] = rk.events.follow(types="task.created")
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        assert list(stream) == []

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(10)
    stream.close()
    thread.join(30)
    assert not thread.is_alive()


def test_a_body_that_is_not_what_its_hash_says_is_refused() -> None:
    wrong = answer(200, b"other bytes")
    with scripted(wrong) as server, RedKey(server.url, KEY) as rk, pytest.raises(ReplyRefused) as failed:
        list(rk.content.pieces("0" * 64))
    assert failed.value.code == "content_hash"


def parse(data: bytes, *cuts: int) -> list[Message]:
    parser, found, begin = Parser(), [], 0
    for end in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found += list(parser.feed(data[begin:end]))
        begin = max(begin, end)
    return found


@given(cuts=st.lists(st.integers(0, 400), max_size=12), ending=st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_the_same_however_they_are_cut(cuts: list[int], ending: str) -> None:
    text = "retry: 5\nid: 1\n\n: a comment\nid: 2\nevent: e\ndata: one\ndata: two\n\ndata:three\n\nid: 4\n\nid: 5\ndata"
    data = text.replace("\n", ending).encode()
    assert parse(data, *cuts) == [
        Message("1", "", ""),
        Message("2", "e", "one\ntwo"),
        Message("2", "", "three"),
        Message("4", "", ""),
    ]


def test_an_event_without_end_is_refused() -> None:
    with pytest.raises(ReplyRefused):
        parse(b"".join(b"data: " + b"x" * 65536 + b"\n" for _ in range(100)), *range(0, 6_000_000, 60_000))


def test_the_events_of_a_workspace_are_followed_as_they_happen(place: Place, rk: RedKey) -> None:
    rk.queues.create("podcast")
    stream = rk.events.follow(types="task.available", queue="podcast", after=0)
    task = rk.tasks.create("podcast", title="Now")
    assert next(stream).subject.id == task.task_id
    stream.close()
