"""Event streams: their bytes, comments while nothing happens, and the end of a stream whose client has left."""

from __future__ import annotations

import ast
import asyncio
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2

import redkey
from redkey.http.event_stream import cursor_frame, event_frame, send_frames
from redkey.http.exchange import Exchange
from tests.http.hosting import Application, hosted

SECONDS = 60.0
# What a server writes; `data:` alone is what clients look for.
_WRITTEN = re.compile(r"(^|\n)(data|event|id|retry): ")


def test_a_frame_has_the_position_the_name_and_the_data_that_it_is_given() -> None:
    assert event_frame(7, b"{}") == b"id: 7\ndata: {}\n\n"
    assert event_frame("7.1", b"{}", "task") == b"id: 7.1\nevent: task\ndata: {}\n\n"
    assert event_frame("", b"{}") == b"data: {}\n\n"
    assert event_frame("", b"{}", "error") == b"event: error\ndata: {}\n\n"
    assert event_frame(0, b"{}") == b"id: 0\ndata: {}\n\n"
    assert cursor_frame(7) == b"id: 7\n\n"


def test_only_one_module_writes_event_streams() -> None:
    root = Path(redkey.__file__).parent
    writers = []
    for file in root.rglob("*.py"):
        texts = [node.value for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Constant)]
        shown = [text.decode("latin-1") if isinstance(text, bytes) else text for text in texts]
        if any(isinstance(text, str) and _WRITTEN.search(text) for text in shown):
            writers.append(file.relative_to(root).as_posix())
    assert writers == ["http/event_stream.py"]


def test_a_quiet_stream_has_comments_between_its_events() -> None:
    more = threading.Event()

    async def frames() -> AsyncIterator[bytes]:
        yield event_frame(1, b"{}")
        await asyncio.to_thread(more.wait, SECONDS)
        yield event_frame(2, b"{}")

    async def answer(exchange: Exchange) -> None:
        await send_frames(exchange, frames(), headers=[(b"x-of", b"test")], quiet_seconds=0.01)

    with hosted(Application(answer)) as url, httpx2.stream("POST", url, timeout=SECONDS) as reply:
        assert (reply.headers["content-type"], reply.headers["x-of"]) == ("text/event-stream", "test")
        came = b""
        for piece in reply.iter_raw():
            came += piece
            if came.count(b":\n\n") >= 2:
                more.set()
    first, last = event_frame(1, b"{}"), event_frame(2, b"{}")
    assert came.startswith(first)
    assert came.endswith(last)
    assert set(came.removeprefix(first).removesuffix(last).split(b"\n\n")) == {b":", b""}


def test_the_events_of_a_client_that_has_left_are_ended() -> None:
    ended = threading.Event()

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield event_frame(1, b"{}")
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def answer(exchange: Exchange) -> None:
        try:
            await send_frames(exchange, frames(), headers=[], quiet_seconds=SECONDS)
        except ConnectionResetError:
            return

    with hosted(Application(answer)) as url:
        with httpx2.stream("POST", url, timeout=SECONDS) as reply:
            assert next(reply.iter_raw()) == event_frame(1, b"{}")
        assert ended.wait(SECONDS)
