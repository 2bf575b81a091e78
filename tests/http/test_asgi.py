"""Mounted ASGI applications: a real Starlette one behind RedKey's own connections, with its lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from redkey.http.asgi import Mount, MountFailed
from tests.harness.acts import until
from tests.http.hosting import Application, hosted


class Life:
    """The events that an application saw."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.left = asyncio.Event()


def application(life: Life) -> Starlette:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        life.events.append("started")
        yield {"word": "from the lifespan"}
        life.events.append("stopped")

    async def echo(request: Request) -> Response:
        return JSONResponse(
            {
                "method": request.method,
                "path": request.url.path,
                "root": request.scope["root_path"],
                "query": dict(request.query_params),
                "header": request.headers.get("x-word"),
                "body": (await request.body()).decode(),
                "state": request.state.word,
            },
            headers={"connection": "keep-alive", "server": "nobody", "x-own": "1"},
        )

    async def pieces(_: Request) -> Response:
        async def generate() -> AsyncIterator[bytes]:
            for number in range(1000):
                yield b"%d\n" % number

        return StreamingResponse(generate())

    async def endless(_: Request) -> Response:
        async def generate() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 1000
                    await asyncio.sleep(0.001)
            finally:
                life.events.append("left")

        return StreamingResponse(generate())

    async def broken(_: Request) -> Response:
        raise ValueError("a fault inside")

    async def half(_: Request) -> Response:
        async def generate() -> AsyncIterator[bytes]:
            yield b"half"
            raise ValueError("a fault in the middle")

        return StreamingResponse(generate())

    async def nothing(_: Request) -> Response:
        return PlainTextResponse(status_code=204)

    routes = [
        Route("/mounted/echo", echo, methods=["GET", "POST", "PUT"]),
        *(Route(f"/mounted/{one.__name__}", one) for one in (pieces, endless, broken, half, nothing)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


@pytest.fixture
def life() -> Life:
    return Life()


@pytest.fixture
def site(life: Life) -> Iterator[httpx2.Client]:
    mount = Mount(application(life))
    with hosted(Application(mount.__call__, mount)) as url, httpx2.Client(base_url=url, timeout=60) as client:
        yield client


def test_requests_reach_the_application_whole(site: httpx2.Client) -> None:
    body = "x" * 300_000
    reply = site.post("/mounted/echo?a=1&b=%20", content=body, headers={"x-word": "w"})
    assert reply.json() == {
        "method": "POST",
        "path": "/mounted/echo",
        "root": "",
        "query": {"a": "1", "b": " "},
        "header": "w",
        "body": body,
        "state": "from the lifespan",
    }
    assert reply.headers["x-own"] == "1"
    assert "server" not in reply.headers
    assert len(reply.headers.get_list("date")) == 1


def test_answers_in_pieces_arrive_whole_and_the_connection_goes_on(site: httpx2.Client) -> None:
    for _ in range(3):
        assert site.get("/mounted/pieces").content == b"".join(b"%d\n" % number for number in range(1000))
    assert site.get("/mounted/nothing").status_code == 204


def test_the_application_learns_that_its_caller_left(site: httpx2.Client, life: Life) -> None:
    with site.stream("GET", "/mounted/endless") as reply:
        next(reply.iter_bytes())
    until(lambda: "left" in life.events)
    assert site.get("/mounted/nothing").status_code == 204


def test_an_error_of_the_application_is_a_problem_and_an_incomplete_answer_is_reset(site: httpx2.Client) -> None:
    reply = site.get("/mounted/broken")
    assert reply.status_code == 500
    assert "a fault inside" not in reply.text
    with pytest.raises(httpx2.TransportError):
        site.get("/mounted/half")
    assert site.get("/mounted/nothing").status_code == 204


def test_a_lifespan_is_entered_and_left(life: Life) -> None:
    mount = Mount(application(life))
    with hosted(Application(mount.__call__, mount)):
        assert life.events == ["started"]
    assert life.events == ["started", "stopped"]


def test_an_application_that_cannot_start_stops_the_start() -> None:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        raise ValueError("no room")
        yield

    mount = Mount(Starlette(lifespan=lifespan))
    with pytest.raises(MountFailed, match="no room"), hosted(Application(mount.__call__, mount)):
        pass


@pytest.mark.parametrize(("status", "stated"), [(204, None), (304, "7")])
def test_an_answer_without_a_body_states_a_length_only_where_it_may(status: int, stated: str | None) -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError("only http")
        length = [(b"content-length", b"7" if status == 304 else b"0")]
        await send({"type": "http.response.start", "status": status, "headers": length})
        await send({"type": "http.response.body", "body": b""})

    mount = Mount(bare)
    with hosted(Application(mount.__call__, mount)) as url, httpx2.Client(base_url=url, timeout=60) as client:
        for _ in range(2):
            # The connection goes on.
            reply = client.get("/")
            assert (reply.status_code, reply.headers.get("content-length")) == (status, stated)


def test_an_application_without_a_lifespan_is_mounted_too() -> None:
    async def plain(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError("only http")
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"plain"})

    mount = Mount(plain)
    with hosted(Application(mount.__call__, mount)) as url:
        assert httpx2.get(url, timeout=60).content == b"plain"
