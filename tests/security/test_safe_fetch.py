"""The safe fetch against servers that lie, drip, redirect, overflow and rebind. Real sockets on loopback."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from redkey.errors import FetchRefused
from redkey.services.safe_fetch import Fetched, FetchPolicy, safe_fetch

# What is fetched here comes at once, if the machine is not busy.
LOCAL = FetchPolicy(private=True, seconds=30.0)
PUBLIC = FetchPolicy(seconds=30.0)
JSON = b"Content-Type: application/json\r\n"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(work: Awaitable[Fetched]) -> Fetched:
    async def whole() -> Fetched:
        return await work

    return asyncio.run(whole())


class Site:
    """A local server that remembers what it was asked."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.requests: list[bytes] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            await self._serve(reader, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def site(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    made = Site(serve)
    server = await asyncio.start_server(made, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.end()


def answer(raw: bytes) -> Serve:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return serve


def ok(body: bytes, headers: bytes = JSON) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def fetch_from(
    serve: Serve, path: str = "/card.json", policy: FetchPolicy = LOCAL
) -> tuple[Fetched | FetchRefused, Site, float]:
    async with site(serve) as made:
        begun = time.monotonic()
        try:
            result: Fetched | FetchRefused = await safe_fetch(f"http://127.0.0.1:{made.port}{path}", policy)
        except FetchRefused as refused:
            result = refused
        return result, made, time.monotonic() - begun


def refusal_of(serve: Serve, policy: FetchPolicy = LOCAL) -> tuple[FetchRefused, float]:
    result, _, seconds = asyncio.run(fetch_from(serve, policy=policy))
    assert isinstance(result, FetchRefused), result
    return result, seconds


def test_json_is_fetched_with_host_and_without_compression_or_redirects() -> None:
    result, made, _ = asyncio.run(fetch_from(answer(ok(b'{"name":"A"}')), "/a/card.json?x=1"))
    assert isinstance(result, Fetched)
    assert result.value == {"name": "A"}
    request = made.requests[0].decode()
    assert request.startswith("GET /a/card.json?x=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{made.port}\r\n" in request
    assert "Accept-Encoding: identity\r\n" in request
    assert len(made.requests) == 1


def test_a_json_suffix_a_charset_chunks_and_an_end_by_closing_are_read() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nContent-Type: application/a2a+json; charset=utf-8\r\n"
    chunked += b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"
    closing = b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n[1,2]"
    for raw in (chunked, closing):
        result, _, _ = asyncio.run(fetch_from(answer(raw)))
        assert isinstance(result, Fetched)
        assert result.value == [1, 2]


def test_an_origin_is_tried_at_the_newer_well_known_place_and_then_at_the_older() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        old = made.requests[-1].startswith(b"GET /.well-known/agent.json ")
        writer.write(ok(b'{"old":true}') if old else b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    async def whole() -> Fetched:
        nonlocal made
        async with site(serve) as made:
            return await safe_fetch(f"http://127.0.0.1:{made.port}", LOCAL)

    made: Site
    fetched = asyncio.run(whole())
    assert fetched.url.endswith("/.well-known/agent.json")
    asked = [request.split(b" ")[1] for request in made.requests]
    assert asked == [b"/.well-known/agent-card.json", b"/.well-known/agent.json"]


def test_a_url_with_a_path_is_taken_as_given() -> None:
    result, made, _ = asyncio.run(fetch_from(answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")))
    assert isinstance(result, FetchRefused)
    assert [request.split(b" ")[1] for request in made.requests] == [b"/card.json"]


async def _drip_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n[")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _drip_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Slow: yes\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def _flood_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\n[")
    while True:
        writer.write(b" " * 65536)
        await writer.drain()


async def _flood_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Fill: " + b"a" * 8000 + b"\r\n")
        await writer.drain()


async def _flood_of_small_chunks(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1;" + b"x" * 4000 + b"\r\n \r\n")
        await writer.drain()


_BOMB = gzip.compress(b"[" + b" " * 10_000_000 + b"]")
_GZIP = JSON + b"Content-Encoding: gzip\r\n"

BAD: dict[str, Serve] = {
    "a redirect to the inside": answer(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    ),
    "a redirect with a body": answer(ok(b"{}").replace(b"200 OK", b"301 Moved")),
    "not found": answer(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    "a failure": answer(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
    "HTML": answer(ok(b"<html></html>", b"Content-Type: text/html\r\n")),
    "JSON that calls itself HTML": answer(ok(b"{}", b"Content-Type: text/html\r\n")),
    "no content type": answer(ok(b"{}", b"")),
    "not JSON": answer(ok(b"{")),
    "JSON with a key twice": answer(ok(b'{"a":1,"a":2}')),
    "JSON too deep": answer(ok(b"[" * 100 + b"]" * 100)),
    "a gzip bomb": answer(ok(_BOMB, _GZIP)),
    "a stated length beyond the limit": answer(b"HTTP/1.1 200 OK\r\n" + JSON + b"Content-Length: 99999999999\r\n\r\n["),
    "a body one byte beyond the limit": answer(ok(b"[" + b" " * (64 * 1024 - 1) + b"]")),
    "a body that is cut off": answer(b"HTTP/1.1 200 OK\r\n" + JSON + b"Content-Length: 10\r\n\r\n{}"),
    "chunks that are cut off": answer(b"HTTP/1.1 200 OK\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    "not HTTP": answer(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "nothing at all": answer(b""),
    "an interim answer only": answer(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "a change of protocol": answer(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "an endless drip": _drip_body,
    "headers that drip": _drip_headers,
    "silence": _silence,
    "an endless body": _flood_body,
    "endless headers": _flood_headers,
    "endless small chunks": _flood_of_small_chunks,
}


@pytest.mark.parametrize("what", BAD)
def test_whatever_else_a_server_answers_is_one_flat_refusal_within_the_time(what: str) -> None:
    refused, seconds = refusal_of(BAD[what], FetchPolicy(private=True, seconds=0.5))
    # The same sentence for an address that is not public and for a name that leads nowhere.
    text = (
        "No JSON document could be fetched from this URL: its host has no public address, or none that is known here."
    )
    assert (refused.code, refused.message) == ("fetch_failed", text)
    assert seconds < 10


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("a redirect with a body", "a redirect (301), which is not followed"),
        ("not found", "status 404"),
        ("HTML", "its content type is 'text/html', not JSON"),
        ("not JSON", "not valid JSON"),
        ("a body one byte beyond the limit", "more than 65,536 bytes"),
        ("a body that is cut off", "cut off"),
        ("not HTTP", "does not speak HTTP"),
        ("silence", "did not answer within 0.5 seconds"),
    ],
)
def test_what_is_wrong_at_a_public_address_is_told(what: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    async def whole() -> FetchRefused:
        async with site(BAD[what]) as opened:

            async def connect(*_: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                return await asyncio.open_connection("127.0.0.1", opened.port)

            monkeypatch.setattr("redkey.services.safe_fetch._connect", connect)
            with pytest.raises(FetchRefused) as refused:
                await safe_fetch("https://agent.example.com/card", FetchPolicy(seconds=0.5), lookup=lookup)
            return refused.value

    refused = asyncio.run(whole())
    assert refused.code == "fetch_failed"
    assert told in refused.message


def test_the_refusal_does_not_tell_open_from_closed_or_unknown() -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    async def whole() -> set[tuple[str, str]]:
        told = set()
        async with site(answer(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")) as opened:
            port = opened.port
            for url, lookup in (
                (f"http://127.0.0.1:{port}/x", None),
                ("https://no.example/x", nowhere),
            ):
                with pytest.raises(FetchRefused) as refused:
                    await (safe_fetch(url, LOCAL, lookup=lookup) if lookup else safe_fetch(url, LOCAL))
                told.add((refused.value.code, refused.value.message))
        with pytest.raises(FetchRefused) as refused:
            await safe_fetch(f"http://127.0.0.1:{port}/x", LOCAL)
        told.add((refused.value.code, refused.value.message))
        return told

    assert len(asyncio.run(whole())) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://agent.example.com/card",
        "https://agent.example.com:8443/card",
        "https://127.0.0.1/card",
        "https://10.0.0.1/card",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/card",
        "https://[::ffff:127.0.0.1]/card",
        "https://[64:ff9b::7f00:1]/card",
        "https://[2002:7f00:1::]/card",
        "https://224.0.0.1/card",
        "https://0.0.0.0/card",
    ],
)
def test_without_leave_for_private_networks_only_https_to_public_addresses_is_called(url: str) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        raise AssertionError("nothing is looked up")

    with pytest.raises(FetchRefused) as refused:
        run(safe_fetch(url, PUBLIC, lookup=lookup))
    assert refused.value.code == "url_refused"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:10.0.0.1"],
        ["64:ff9b::a00:1"],
        ["fe80::1%eth0"],
        ["93.184.216.34", "127.0.0.1"],
        ["2606:4700::1111", "fd00::1"],
        [],
    ],
)
def test_a_name_with_an_address_inside_is_refused_flatly_and_never_called(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_call(*_: object, **__: object) -> None:
        raise AssertionError("nothing is called")

    async def lookup(host: str, port: int) -> Sequence[str]:
        return addresses

    monkeypatch.setattr(asyncio, "open_connection", no_call)
    with pytest.raises(FetchRefused) as refused:
        run(safe_fetch("https://inside.example/card", PUBLIC, lookup=lookup))
    assert refused.value.code == "fetch_failed"


def test_leave_for_private_networks_does_not_open_plain_http_or_odd_ports_to_the_internet() -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    for url in ("http://agent.example.com/card", "https://agent.example.com:8443/card", "http://93.184.216.34/card"):
        with pytest.raises(FetchRefused):
            run(safe_fetch(url, LOCAL, lookup=lookup))


def test_a_name_is_looked_up_once_and_the_call_goes_to_what_was_checked() -> None:
    """Rebinding: the second answer would lead elsewhere, and nobody asks for it."""
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async def whole() -> Fetched:
        async with site(answer(ok(b"{}"))) as made:
            fetched = await safe_fetch(f"http://rebind.example:{made.port}/card", LOCAL, lookup=lookup)
            assert f"Host: rebind.example:{made.port}\r\n".encode() in made.requests[0]
            return fetched

    assert asyncio.run(whole()).value == {}
    assert asked == ["rebind.example"]


def test_the_next_address_is_called_when_one_does_not_answer() -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async def whole() -> Fetched:
        async with site(answer(ok(b"[]"))) as made:
            return await safe_fetch(f"http://two.example:{made.port}/card", LOCAL, lookup=lookup)

    assert asyncio.run(whole()).value == []


def test_a_lookup_that_hangs_ends_with_the_time() -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    begun = time.monotonic()
    with pytest.raises(FetchRefused):
        run(safe_fetch("https://slow.example/card", FetchPolicy(seconds=0.2), lookup=lookup))
    assert time.monotonic() - begun < 10


def _certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's side of TLS, for a certificate that names `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    client = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    return server, client


def test_tls_is_checked_against_the_name_and_not_the_address(tmp_path: Path) -> None:
    server, client = _certificate(tmp_path, "agent.example")

    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def whole() -> tuple[Fetched, list[str]]:
        refusals = []
        async with site(answer(ok(b'{"tls":true}')), server) as made:
            fetched = await safe_fetch(f"https://agent.example:{made.port}/card", LOCAL, lookup=lookup, tls=client)
            for host, context in (("other.example", client), ("agent.example", None)):
                with pytest.raises(FetchRefused) as refused:
                    await safe_fetch(f"https://{host}:{made.port}/card", LOCAL, lookup=lookup, tls=context)
                refusals.append(refused.value.code)
        return fetched, refusals

    fetched, refusals = asyncio.run(whole())
    assert fetched.value == {"tls": True}
    assert refusals == ["fetch_failed", "fetch_failed"]
