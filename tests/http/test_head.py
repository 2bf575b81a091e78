"""A cached head equals the same head parsed without the cache, whatever was parsed before."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.http import head
from redkey.http.head import Head, parse_head
from redkey.http.problems import Declined

_FIRST = st.sampled_from(
    [
        b"POST /queues/x/tasks HTTP/1.1",
        b"GET /tasks?limit=2&after=%20 HTTP/1.1",
        b"GET /a%20b HTTP/1.1",
        b"GET /a#b HTTP/1.1",
        b"GET /a?b#c HTTP/1.1",
        b"GET * HTTP/1.1",
        b"GET http://redkey/a HTTP/1.1",
        b"GET  /a HTTP/1.1",
        b"GET /\xff HTTP/1.1",
        b"GET /a HTTP/1.0",
        b"GET /a HTTP/2.0",
        b"BREW /a HTTP/1.1",
        b"GE\x00T /a HTTP/1.1",
    ]
)
_LINE = st.sampled_from(
    [
        b"host: redkey",
        b"authorization: Bearer rk_a_b",
        b"content-length: 2",
        b"content-length: 3",
        b"transfer-encoding: chunked",
        b"connection: close",
        b"accept: a",
        b"accept: b",
        b"idempotency-key: one",
        b"idempotency-key: two \t",
        b"idempotency-key: ",
        b"idempotency-key:three",
        b"Idempotency-Key: four",
        b"idempotency-key: f\rive",
        b"idempotency-key: s\x00ix",
        b" folded",
        b"",
    ]
)


def _answer(parse: object, block: bytes) -> Head | tuple[int, str, str]:
    try:
        return parse(block)  # type: ignore[no-any-return, operator]
    except Declined as declined:
        return declined.status, declined.code, declined.message


@given(st.lists(st.tuples(_FIRST, st.lists(_LINE, max_size=7)), min_size=1, max_size=6))
def test_a_head_that_is_looked_up_is_what_parsing_it_gives(requests: list[tuple[bytes, list[bytes]]]) -> None:
    head._blocks.clear()
    for first, lines in requests:
        block = b"\r\n".join([first, *lines])
        expected = _answer(head._parse, block)
        assert _answer(parse_head, block) == expected
        assert _answer(parse_head, block) == expected


@pytest.mark.parametrize("name", [b"x%d", b"x"])
def test_the_key_counts_as_a_header_of_a_known_block(name: bytes) -> None:
    lines = [b"host: redkey", *(name % index + b": 1" if b"%" in name else name + b": 1" for index in range(63))]
    block = b"\r\n".join([b"GET / HTTP/1.1", *lines])
    assert parse_head(block).method == "GET"
    with pytest.raises(Declined) as refused:
        parse_head(block + b"\r\nidempotency-key: one")
    assert refused.value.code == "headers_too_large"


def test_blocks_are_kept_within_bounds() -> None:
    for index in range(head._BLOCKS + 10):
        parse_head(b"GET / HTTP/1.1\r\nhost: redkey\r\nx: %d" % index)
    assert len(head._blocks) <= head._BLOCKS
    parse_head(large := b"GET / HTTP/1.1\r\nhost: redkey\r\nx: " + b"y" * head._BLOCK_BYTES)
    assert large.partition(b"\r\n")[2] not in head._blocks
    assert max(len(block) for block in head._blocks) <= head._BLOCK_BYTES
    assert msgspec.structs.asdict(parse_head(b"GET / HTTP/1.1\r\nhost: redkey"))["headers"] == {b"host": b"redkey"}
