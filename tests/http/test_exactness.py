"""Raw requests: the answers, the records, and the verdict of h11 on the same bytes.

Two rules hold for every case. What h11 refuses is refused here too. And a request that is answered 4xx or 5xx, or not
at all, has recorded nothing.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import h11
import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import head
from tests.harness.server import Server
from tests.http.raw import exchange

BODY = b'{"title":"t"}'
# How many records one new task makes.
RECORDS = 2


class Case(NamedTuple):
    """Request bytes with `KEY` in place of the authorization, the expected statuses, and how many tasks are created."""

    name: str
    data: bytes
    statuses: tuple[int, ...]
    created: int = 0
    # Where we refuse what h11 takes.
    stricter: bool = False


def post(*lines: bytes, body: bytes = BODY, version: bytes = b"1.1", host: bytes = b"host: x\r\n") -> bytes:
    """Return a request that creates a task, with more header lines."""
    head = b"POST /queues/queue_raw/tasks HTTP/" + version + b"\r\n" + host
    head += b"authorization: Bearer KEY\r\ncontent-type: application/json\r\n"
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


LENGTH = b"content-length: %d" % len(BODY)
GOOD = post(LENGTH)
CHUNKED = b"transfer-encoding: chunked"
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def chunks(body: bytes = BODY, trailers: bytes = b"", extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n0\r\n%b\r\n" % (len(body), extension, body, trailers)


CASES = [
    Case("a request", GOOD, (201,), 1),
    Case("a chunked request", post(CHUNKED, body=chunks()), (201,), 1),
    Case("an empty line before it", b"\r\n" + GOOD, (201,), 1),
    Case("two in line", GOOD + GOOD, (201, 201), 2),
    Case("an offer to upgrade", post(LENGTH, b"connection: upgrade", b"upgrade: h2c"), (201,), 1),
    Case("names in capitals", GOOD.replace(b"content-length", b"Content-LENGTH"), (201,), 1),
    Case("an absolute target", GOOD.replace(b"POST /", b"POST http://x/"), (201,), 1),
    # Errors come in their place.
    Case("a request and a stray byte", GOOD + b"\x00", (201, 400), 1),
    Case("a request and garbage", GOOD + b"garbage\r\n\r\n", (201, 400), 1),
    Case("garbage and a request", b"garbage\r\n\r\n" + GOOD, (400,)),
    Case("a refused head and a request", post(b"host: y", LENGTH) + GOOD, (400,)),
    Case("too many headers and a request", post(*[b"a: b"] * 65, LENGTH) + GOOD, (431,), 0, True),
    Case("too large a head and a request", post(b"a: " + b"b" * 33_000, LENGTH) + GOOD, (431,), 0, True),
    Case("the end of the connection and a request", post(LENGTH, b"connection: close") + GOOD, (201,), 1),
    Case("a request of version 1.0 and another", post(LENGTH, version=b"1.0") + GOOD, (201,), 1),
    Case("not authorized, and a request", GOOD.replace(b"KEY", b"rk_x") + GOOD, (401, 201), 1),
    Case("a bad chunk and a request", post(CHUNKED, body=b"zz\r\n") + GOOD, (400,)),
    # Trailers are never headers.
    Case("a trailer", post(CHUNKED, body=chunks(trailers=b"a: b\r\n")), (201,), 1),
    Case(
        "a key as a trailer",
        post(CHUNKED, body=chunks(trailers=b"authorization: Bearer KEY\r\n")).replace(
            b"authorization: Bearer KEY\r\ncontent", b"content"
        ),
        (401,),
    ),
    Case("endless trailers", post(CHUNKED, body=chunks(trailers=b"a: b\r\n" * 5000)), (431,), 0, True),
    Case("a trailer that is none", post(CHUNKED, body=chunks(trailers=b"a b\r\n")), (400,)),
    Case("a chunk extension", post(CHUNKED, body=chunks(extension=b";a=b")), (201,), 1),
    Case("an endless chunk extension", post(CHUNKED, body=chunks(extension=b";" + b"a" * 5000)), (431,), 0, True),
    # One host, one caller, one framing.
    Case("no host", post(LENGTH, host=b""), (400,)),
    Case("two hosts", post(b"host: x", LENGTH), (400,)),
    Case("a host with a path", post(LENGTH, host=b"host: x/y\r\n"), (400,), 0, True),
    Case("two keys", post(b"authorization: Bearer other", LENGTH), (400,), 0, True),
    Case("two lengths", post(LENGTH, LENGTH), (400,), 0, True),
    Case("two different lengths", post(LENGTH, b"content-length: 1"), (400,)),
    Case("a list of lengths", post(LENGTH + b", 13"), (400,), 0, True),
    Case("a signed length", post(b"content-length: +13"), (400,)),
    Case("a length that is no number", post(b"content-length: 0x0d"), (400,)),
    Case("a length beyond everything", post(b"content-length: " + b"9" * 30), (400,)),
    Case("a length and chunks", post(LENGTH, CHUNKED, body=chunks()), (400,), 0, True),
    Case("two encodings", post(b"transfer-encoding: gzip, chunked", body=chunks()), (501,)),
    Case("chunked twice", post(CHUNKED, CHUNKED, body=chunks()), (400,)),
    Case("another encoding", post(b"transfer-encoding: identity"), (501,)),
    Case("chunks of version 1.0", post(CHUNKED, body=chunks(), version=b"1.0"), (400,), 0, True),
    Case("a chunk size with a prefix", post(CHUNKED, body=b"0xd\r\n" + BODY + b"\r\n0\r\n\r\n"), (400,)),
    Case("a chunk longer than its stated size", post(CHUNKED, body=b"1\r\n" + BODY + b"\r\n0\r\n\r\n"), (400,)),
    Case("a negative chunk", post(CHUNKED, body=b"-1\r\n\r\n"), (400,)),
    # Versions and first lines.
    Case("version 0.9", b"GET /healthz\r\n\r\n", (400,)),
    Case("version 0.9 by name", HEALTH.replace(b"1.1", b"0.9"), (505,), 0, True),
    Case("version 2.0", HEALTH.replace(b"1.1", b"2.0"), (505,), 0, True),
    Case("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505,)),
    Case("two spaces", HEALTH.replace(b"GET /", b"GET  /"), (400,)),
    Case("a tab", HEALTH.replace(b"GET /", b"GET\t/"), (400,)),
    Case("a fragment", HEALTH.replace(b"/healthz", b"/healthz#x"), (400,), 0, True),
    Case("a target that is none", HEALTH.replace(b"/healthz", b"healthz"), (400,), 0, True),
    Case("a target beyond ASCII", HEALTH.replace(b"/healthz", b"/\xff"), (400,)),
    Case("a tunnel", b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n", (400,), 0, True),
    Case("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), (400,)),
    # Lines.
    Case("line feeds alone", HEALTH.replace(b"\r\n", b"\n"), (400,), 0, True),
    Case("a line feed alone", post(b"a: b\nc: d", LENGTH), (400,), 0, True),
    Case("a carriage return alone", post(b"a: b\rc: d", LENGTH), (400,)),
    Case("a folded line", post(b"a: b", b" c", LENGTH), (400,), 0, True),
    Case("a folded first line", HEALTH.replace(b"host", b" host"), (400,)),
    Case("a space before the colon", post(b"a : b", LENGTH), (400,)),
    Case("no name", post(b": b", LENGTH), (400,)),
    Case("no colon", post(b"a", LENGTH), (400,)),
    Case("NUL in a value", post(b"a: b\x00c", LENGTH), (400,)),
    Case("a control character in a value", post(b"a: b\x01c", LENGTH), (400,), 0, True),
]


# h11 reports bytes behind a request that ends the connection as an error. Here they are dropped: neither done nor
# answered, as the first test holds these cases to.
DROPPED = frozenset({"the end of the connection and a request", "a request of version 1.0 and another"})


def h11_refuses(data: bytes) -> bool:
    """Return whether h11, as a server that answers every request, finds an error in the bytes."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=32 * 1024)
    connection.receive_data(data)
    connection.receive_data(b"")
    try:
        while True:
            event = connection.next_event()
            if event is h11.PAUSED:
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                if connection.our_state is h11.SWITCHED_PROTOCOL:
                    return False
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE:
                    return False
                connection.start_next_cycle()
            elif type(event) is h11.ConnectionClosed or event is h11.NEED_DATA:
                return False
    except h11.RemoteProtocolError as error:
        return "peer unexpectedly closed" not in str(error)


@pytest.fixture(scope="module")
def key(server: Server) -> bytes:
    """Return the key of a new workspace with a queue."""
    with server.client() as operator:
        made = operator.post("/workspaces", {}).json
    with server.client(made["apiKey"]) as admin:
        assert admin.post("/queues", {"id": "raw", "name": "raw"}).status == 201
    return made["apiKey"].encode()


def answered(server: Server, key: bytes, segments: list[bytes]) -> tuple[tuple[int, ...], int]:
    """Return the statuses that the bytes get, and how many records they create."""
    with server.client(key.decode()) as client:
        before = head(client)
        statuses = tuple(answer.status for answer in exchange(server, segments))
        return statuses, head(client) - before


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_request_is_answered_in_its_place_and_records_what_it_says(server: Server, key: bytes, case: Case) -> None:
    data = case.data.replace(b"KEY", key)
    assert answered(server, key, [data]) == (case.statuses, case.created * RECORDS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_h11_refuses_is_refused_here(case: Case) -> None:
    if case.data.startswith(b"\r\n"):
        assert h11_refuses(case.data), "RFC 9112 asks servers to pass over an empty line; h11 does not"
        return
    if case.name in DROPPED:
        assert h11_refuses(case.data)
        return
    refused = any(status >= 400 and status != 401 for status in case.statuses)
    if h11_refuses(case.data):
        assert refused
    elif refused:
        assert case.stricter or len(case.statuses) > 1 or 401 in case.statuses, "h11 takes it; say that we are stricter"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_segments_change_nothing(server: Server, key: bytes, case: Case) -> None:
    """Every segmentation of the bytes gives the same answers and records."""
    data = case.data.replace(b"KEY", key)
    draw = random.Random(case.name)
    cuts = sorted(draw.sample(range(1, len(data)), min(40, len(data) - 1)))
    segments = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert answered(server, key, segments) == (case.statuses, case.created * RECORDS)


def test_no_length_is_stated_where_there_is_no_body(workspace: Workspace) -> None:
    """The bus answers an acknowledgement with 204."""
    key = workspace.admin.key
    lines = f"host: 127.0.0.1\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n".encode()

    def call(method: bytes, path: bytes, body: bytes = b"") -> bytes:
        return method + b" " + path + b" HTTP/1.1\r\n" + lines + b"content-length: %d\r\n\r\n%b" % (len(body), body)

    made = call(b"POST", b"/api/sessions", b'{"id":"bodiless"}')
    agent = call(b"POST", b"/api/sessions/bodiless/agents", b'{"id":"a"}')
    removed = call(b"DELETE", b"/api/sessions/bodiless/agents/a")
    answers = exchange(workspace.server, [made + agent + removed])
    assert [answer.status for answer in answers] == [201, 201, 204]
    assert "content-length" not in answers[-1].headers
