"""Chunked bodies: every segmentation gives the same body, and everything besides the data is limited."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.http.chunked import TRAILER_BYTES, ChunkedBody
from redkey.http.problems import Declined

pieces = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


def encoded(chunks: list[bytes], trailers: bytes = b"") -> bytes:
    return b"".join(b"%X;x=y\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n" + trailers + b"\r\n"


def decode(segments: list[bytes]) -> tuple[bytes, bytes, bool]:
    """Return the body, the bytes after it, and whether its end was seen."""
    body, rest, decoder = b"", b"", ChunkedBody()
    for segment in segments:
        found, rest = decoder.feed(rest + segment)
        body += b"".join(found)
    return body, rest, decoder.done


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(bounds)]


@given(pieces, st.lists(st.integers(0, 2000), max_size=30), st.binary(max_size=20))
def test_every_cut_gives_the_same_body(chunks: list[bytes], places: list[int], following: bytes) -> None:
    data = encoded(chunks, b"trailer: dropped\r\n") + following
    assert decode(cut(data, places)) == (b"".join(chunks), following, True)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=10))
def test_bytes_that_are_no_chunks_are_refused_alike_however_they_are_cut(data: bytes, places: list[int]) -> None:
    def verdict(segments: list[bytes]) -> object:
        try:
            return decode(segments)
        except Declined as declined:
            return declined.code

    assert verdict([data]) == verdict(cut(data, places))


@pytest.mark.parametrize("size", [TRAILER_BYTES + 1, 10 * TRAILER_BYTES])
@pytest.mark.parametrize("line", [b"a: " + b"b" * 4093 + b"\r\n", b"a:\r\n", b""])
def test_trailers_without_end_are_refused(size: int, line: bytes) -> None:
    trailers = line * (size // len(line) + 1) if line else b"a:" + b"b" * size
    with pytest.raises(Declined) as refused:
        decode(cut(encoded([b"x"], trailers), list(range(0, size, 1000))))
    assert refused.value.status == 431
