"""Plain requests over connections of our own: kept open, read however they come, never mixed up, and trusted."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import multiprocessing
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from redkey.client import AsyncRedKey, RedKey, TimedOut, Unreachable
from redkey.client.idle import Idle
from redkey.client.plain import LARGEST_BODY_BYTES, Reader, find_address
from redkey.client.settings import find_settings
from redkey.shapes.server import Health
from tests.client.scripted import KEY, Heard, answer, read_request, scripted

OK = answer(200, b'{"status":"ok"}')
GONE = b""
both = pytest.mark.parametrize("mode", ["sync", "async"])
# What one connection answers, one request after the other, in pieces; a piece `GONE` ends it.
Answers = tuple[tuple[bytes, ...], ...]


class Kept:
    """A server that keeps connections open, and how many requests came on which."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.heard: list[list[Heard]] = []
        # A request has come; a client has ended a connection that had nothing left to say.
        self.came, self.left = threading.Event(), threading.Event()


@contextmanager
def kept(*connections: Answers, tls: ssl.SSLContext | None = None) -> Iterator[Kept]:
    """Accept these connections in their order; each stays open until one side ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Kept(f"{'https' if tls else 'http'}://127.0.0.1:{listening.getsockname()[1]}")

        def talk(accepted: socket.socket, answers: Answers, heard: list[Heard]) -> None:
            # A client that goes in the middle of something is no failure of the server's.
            with suppress(OSError), accepted if tls is None else tls.wrap_socket(accepted, server_side=True) as one:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pieces in answers:
                    heard.append(read_request(one))
                    server.came.set()
                    for piece in pieces:
                        if piece == GONE:
                            return
                        one.sendall(piece)
                if one.recv(1) == b"":
                    server.left.set()

        def serve() -> None:
            talking = []
            for answers in connections:
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    break
                server.heard.append([])
                thread = threading.Thread(target=talk, args=(accepted, answers, server.heard[-1]), daemon=True)
                thread.start()
                talking.append(thread)
            for thread in talking:
                thread.join(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def ask(url: str, mode: str, times: int = 1, **options: Any) -> list[Health]:
    """Ask how the server is, several times by one client."""
    if mode == "sync":
        with RedKey(url, KEY, **options) as rk:
            return [rk.server.health() for _ in range(times)]

    async def run() -> list[Health]:
        async with AsyncRedKey(url, KEY, **options) as rk:
            return [await rk.server.health() for _ in range(times)]

    return asyncio.run(run())


@both
def test_one_connection_serves_many_calls(mode: str) -> None:
    with kept(((OK,),) * 3) as server:
        assert len(ask(server.url, mode, 3)) == 3
    assert [len(requests) for requests in server.heard] == [3]


@both
def test_a_connection_that_the_server_ended_meanwhile_is_not_used_again(mode: str) -> None:
    """Without a retry: whether it is still open is known before anything is sent."""
    closing = answer(200, b'{"status":"ok"}', connection="close")
    with kept(((closing,),), ((OK,),)) as server:
        assert len(ask(server.url, mode, 2, max_retries=0)) == 2
    assert [len(requests) for requests in server.heard] == [1, 1]


@both
def test_a_connection_that_ends_while_it_waits_is_not_used_again(mode: str) -> None:
    def waiting(rk: Any) -> Any:
        [(_, link)] = rk._connection._links._idle._waiting
        return link

    async def run(url: str) -> Health:
        async with AsyncRedKey(url, KEY, max_retries=0) as rk:
            await rk.server.health()
            async with asyncio.timeout(10):
                while waiting(rk).is_alive():
                    await asyncio.sleep(0)
            return await rk.server.health()

    def go(url: str) -> Health:
        with RedKey(url, KEY, max_retries=0) as rk:
            rk.server.health()
            waiting(rk)._looking.poll(10_000)
            return rk.server.health()

    with kept(((OK, GONE),), ((OK,),)) as server:
        assert (go(server.url) if mode == "sync" else asyncio.run(run(server.url))).status == "ok"
    assert [len(requests) for requests in server.heard] == [1, 1]


@both
@pytest.mark.parametrize(
    "pieces",
    [
        tuple(OK[at : at + 1] for at in range(len(OK))),
        (b"HTTP/1.1 100 Continue\r\n\r\n", OK),
        (b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"sta\r\n', b'a\r\ntus":"ok"}\r\n0\r\n\r\n'),
        (b'HTTP/1.1 200 OK\r\n\r\n{"status":', b'"ok"}', GONE),
        (answer(200, gzip.compress(b'{"status":"ok"}'), content_encoding="gzip"),),
    ],
    ids=["byte by byte", "announced", "in chunks", "until the end", "packed"],
)
def test_an_answer_is_read_however_it_comes(mode: str, pieces: tuple[bytes, ...]) -> None:
    with kept((pieces,)) as server:
        assert ask(server.url, mode, max_retries=0) == [Health(status="ok")]


@both
@pytest.mark.parametrize(
    "pieces",
    [
        (GONE,),
        (b"SSH-2.0-OpenSSH_9.9\r\n",),
        (OK[:-1], GONE),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",),
        (answer(200, b"{}", content_encoding="gzip"),),
    ],
    ids=["nothing", "not HTTP", "cut", "another protocol", "packed wrongly"],
)
def test_what_is_no_answer_is_an_error(mode: str, pieces: tuple[bytes, ...]) -> None:
    with kept((pieces,)) as server, pytest.raises(Unreachable):
        ask(server.url, mode, max_retries=0)


@both
def test_what_comes_after_an_answer_is_nobodys_answer(mode: str) -> None:
    with kept(((OK + answer(500, b"{}"),),), ((OK,),)) as server:
        assert len(ask(server.url, mode, 2, max_retries=0)) == 2
    assert len(server.heard) == 2


@both
def test_an_answer_may_take_longer_than_the_timeout_as_long_as_it_goes_on(mode: str) -> None:
    class Slow(tuple[bytes, ...]):
        """Pieces with a pause before each but the first."""

        def __iter__(self) -> Iterator[bytes]:
            for number, piece in enumerate(super().__iter__()):
                if number:
                    time.sleep(1.2)
                yield piece

    slow = Slow((OK[:10], OK[10:20], OK[20:30], OK[30:]))
    with kept((slow,)) as server:
        assert ask(server.url, mode, timeout=3.0, max_retries=0) == [Health(status="ok")]
    with kept(((OK[:10],),)) as server, pytest.raises(TimedOut):
        ask(server.url, mode, timeout=0.2, max_retries=0)


def test_a_call_that_is_cancelled_leaves_nothing_to_the_next() -> None:
    async def run(server: Kept) -> Health:
        async with AsyncRedKey(server.url, KEY, max_retries=0) as rk:
            first = asyncio.ensure_future(rk.server.ready())
            assert await asyncio.to_thread(server.came.wait, 10)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert await asyncio.to_thread(server.left.wait, 10)
            return await rk.server.health()

    never: tuple[bytes, ...] = ()
    with kept((never,), ((OK,),)) as server:
        assert asyncio.run(run(server)).status == "ok"


@both
def test_bodies_of_every_size_arrive(mode: str) -> None:
    made = answer(201, b'{"queueId":"queue_a","name":"a","eventId":"evt_1"}')
    names = ["a" * 10, "b" * LARGEST_BODY_BYTES, "c" * 1_000_000]
    with scripted(*[made] * len(names)) as server:
        for name in names:
            if mode == "sync":
                with RedKey(server.url, KEY) as rk:
                    rk.queues.create(name)
            else:

                async def run(name: str = name) -> None:
                    async with AsyncRedKey(server.url, KEY) as rk:
                        await rk.queues.create(name)

                asyncio.run(run())
    assert [request.body for request in server.heard] == [b'{"name":"%s"}' % name.encode() for name in names]


def test_a_request_says_where_it_goes_and_who_asks() -> None:
    with scripted(answer(200, b'{"items":[]}'), answer(200, b'{"status":"ok"}')) as server:
        with RedKey(server.url + "/behind/a.proxy", KEY) as rk:
            list(rk.agents.list(after="a b&c", limit=5))
        ask(server.url, "sync")
    [listed, asked] = server.heard
    assert listed.line == "GET /behind/a.proxy/agents?limit=5&after=a+b%26c HTTP/1.1"
    assert listed.headers["host"] == server.url.removeprefix("http://")
    assert listed.headers["authorization"] == f"Bearer {KEY}"
    # How a server is may be asked by anybody.
    assert "authorization" not in asked.headers


@both
def test_a_proxy_of_the_environment_is_asked_for_other_machines(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(OK) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert ask("http://rk.example", mode, max_retries=0) == [Health(status="ok")]
    assert proxy.heard[0].line == "GET http://rk.example/healthz HTTP/1.1"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://rk.example", ("rk.example", 80, "rk.example", "")),
        ("https://rk.example:443/a/b/", ("rk.example", 443, "rk.example", "/a/b")),
        ("http://[::1]:8700", ("::1", 8700, "[::1]:8700", "")),
        ("http://bücher.example", None),
        ("http://rk.example/a%20b", None),
    ],
)
def test_an_address_that_needs_no_encoding_is_ours(
    url: str, found: tuple[Any, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    address = find_address(find_settings(url, KEY, None, {}), None)
    assert (address and (address.host, address.port, address.authority, address.prefix)) == found


@both
def test_a_client_that_was_closed_says_so(mode: str) -> None:
    async def run() -> None:
        rk = AsyncRedKey("http://127.0.0.1:1", KEY)
        await rk.close()
        await rk.server.health()

    def go() -> None:
        rk = RedKey("http://127.0.0.1:1", KEY)
        rk.close()
        rk.server.health()

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(run()) if mode == "async" else go()


def certificate(folder: Path, name: x509.GeneralName) -> ssl.SSLContext:
    """What a server for this name shows; `server.pem` in the folder is for those who trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    named, now = x509.Name([]), datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=True)
        .sign(key, hashes.SHA256())
    )
    path, pem = folder / "server.pem", serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + made.public_bytes(pem))
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(path)
    return shown


@both
@pytest.mark.parametrize(("name", "trusted"), [("127.0.0.1", True), ("127.0.0.2", True), ("127.0.0.1", False)])
def test_a_server_is_trusted_by_its_certificate_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, name: str, trusted: bool
) -> None:
    shown = certificate(tmp_path, x509.IPAddress(ip_address(name)))
    if trusted:
        # Also for a server of this machine, which no proxy of the environment is between.
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with kept(((OK,),) * 2, tls=shown) as server:
        if trusted and name == "127.0.0.1":
            assert len(ask(server.url, mode, 2, max_retries=0)) == 2
            assert len(server.heard) == 1
        else:
            with pytest.raises(Unreachable, match="certificate"):
                ask(server.url, mode, max_retries=0)
            assert server.heard == [[]]


class Fake:
    """A link that is open until it is closed."""

    keeps_open = True

    def __init__(self) -> None:
        self.is_closed = False

    def is_alive(self) -> bool:
        return not self.is_closed

    def close(self) -> None:
        self.is_closed = True


def test_links_wait_for_a_while_and_not_in_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("redkey.client.idle.time.monotonic", lambda: now[0])
    idle: Idle[Fake] = Idle()
    links = [Fake() for _ in range(102)]
    for link in links:
        idle.give(link)
    assert [link.is_closed for link in links[:3]] == [True, True, False]
    assert idle.take() is links[-1]
    now[0] = 29.0
    idle.give(links[-1])
    now[0] = 31.0
    # The last used is the next; those that have waited too long go when another is given back.
    assert idle.take() is links[-1]
    idle.give(links[-1])
    assert all(link.is_closed for link in links[:-1])
    idle.close()
    assert links[-1].is_closed
    late = Fake()
    idle.give(late)
    assert late.is_closed
    ended = Fake()
    ended.keeps_open = False
    Idle[Fake]().give(ended)
    assert ended.is_closed


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
    ids=["cut", "only announced", "the one before"],
)
def test_the_end_of_a_connection_is_no_answer_but_where_there_is_no_other_end(before: bytes) -> None:
    reader = Reader()
    reader.feed(before)
    with pytest.raises(ConnectionError):
        reader.end()


def test_a_forked_child_speaks_on_connections_of_its_own() -> None:
    with kept(((OK,), (OK,)), ((OK,),)) as server, RedKey(server.url, KEY) as rk:
        rk.server.health()
        child = multiprocessing.get_context("fork").Process(target=rk.server.metrics)
        child.start()
        child.join(30)
        assert child.exitcode == 0
        rk.server.health()
    ours, its_own = (sorted(one.line.split()[1] for one in heard) for heard in server.heard)
    assert (ours, its_own) == (["/healthz", "/healthz"], ["/metrics"])
