"""How a server handles the responses of witnesses, good and bad; each witness here is a socket with one response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redkey.errors import WitnessAway
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE
from redkey.ledger.signer import Signer
from redkey.ledger.witness import parse_request
from redkey.services.witness_post import WitnessPost
from redkey.services.witnessing import Answer, Courier, Offer
from tests.harness.workshop import Workshop

WITNESS = Signer.generate("witness.example/w", COSIGNATURE)
STRANGER = Signer.generate("witness.example/w", COSIGNATURE)

Said = Callable[[bytes], bytes]


def http(status: int, body: bytes, *more: str) -> bytes:
    lines = (f"HTTP/1.1 {status} So", f"Content-Length: {len(body)}", "Connection: close", *more)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


@asynccontextmanager
async def witness(say: Said, *, hang: bool = False) -> AsyncIterator[str]:
    """A witness that answers each request with these bytes."""

    ended: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(end := asyncio.Event())
        try:
            await speak(reader, writer)
        finally:
            writer.close()
            end.set()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        writer.write(say(await reader.readexactly(length)))
        if hang:
            await reader.read()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}/prefix"
    finally:
        server.close()
        for end in ended:
            await end.wait()


async def posted(say: Said, *, hang: bool = False, seconds: float = 10.0) -> Answer:
    post = WitnessPost(seconds)
    try:
        async with witness(say, hang=hang) as url:
            return await post(url, b"a request")
    finally:
        await post.close()


def test_status_and_body_are_given_as_they_are() -> None:
    assert asyncio.run(posted(lambda body: http(409, b"7\n"))) == Answer(409, b"7\n")
    assert asyncio.run(posted(lambda body: http(302, b"", "Location: http://127.0.0.1:1/"))).status == 302


@pytest.mark.parametrize(
    "said", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 So\r\nContent-Length: 9\r\n\r\ncut", http(200, bytes(70_000))]
)
def test_what_is_no_answer_is_told_as_none(said: bytes) -> None:
    with pytest.raises(WitnessAway):
        asyncio.run(posted(lambda body: said))


def test_an_answer_that_never_ends_is_given_up() -> None:
    with pytest.raises(WitnessAway) as away:
        asyncio.run(posted(lambda body: b"HTTP/1.1 200 So\r\nContent-Length: 9\r\n\r\n.", hang=True, seconds=0.2))
    assert away.value.code == "witness_unreachable"


def test_nobody_at_the_address_is_told_as_no_answer() -> None:
    async def call() -> None:
        async with witness(lambda body: b"") as url:
            pass
        post = WitnessPost()
        try:
            await post(url, b"")
        finally:
            await post.close()

    with pytest.raises(WitnessAway):
        asyncio.run(call())


# The courier.


def brought(directory: Path, say: Said) -> bytes:
    """Return what a courier gets from a witness that has never seen the log."""

    async def bring() -> bytes:
        with Workshop(directory) as workshop, ThreadPoolExecutor(1) as threads:
            workshop.furnish()
            workshop.signing.sign()
            ((size, note),) = workshop.store.checkpoints(workshop.topic, 1)
            post = WitnessPost()
            try:
                async with witness(say) as url:
                    courier = Courier(url, WITNESS.verifier, workshop.store, post)
                    offer = Offer(workshop.topic, size, note)
                    assert courier.lacks(offer)
                    line = await courier.bring(offer, threads)
                    assert not courier.lacks(offer)
                    return line
            finally:
                await post.close()

    return asyncio.run(bring())


def cosigning(signer: Signer) -> Said:
    return lambda body: http(200, cosign(signer, parse_request(body).note.text, 1_790_000_000).line().encode())


def test_a_cosignature_is_brought_back(tmp_path: Path) -> None:
    assert WITNESS.verifier.name.encode() in brought(tmp_path / "data", cosigning(WITNESS))


def test_the_proof_begins_where_the_witness_says(tmp_path: Path) -> None:
    asked: list[int] = []

    def say(body: bytes) -> bytes:
        asked.append(parse_request(body).old)
        return http(409, b"2\n") if len(asked) == 1 else cosigning(WITNESS)(body)

    brought(tmp_path / "data", say)
    assert asked == [0, 2]


def _of_another_checkpoint(body: bytes) -> bytes:
    text = open_checkpoint(parse_request(body).note.encode())[1].text.replace(b"redkey/", b"yekder/")
    return http(200, cosign(WITNESS, text, 1_790_000_000).line().encode())


@pytest.mark.parametrize(
    ("say", "code", "for_long"),
    [
        (cosigning(STRANGER), "cosignature_wrong", False),
        (_of_another_checkpoint, "cosignature_wrong", False),
        (lambda body: http(200, b"\xff\xfe not a line"), "cosignature_wrong", False),
        (lambda body: http(200, b""), "cosignature_wrong", False),
        (lambda body: http(409, b"no number"), "witness_refused", False),
        (lambda body: http(500, b"busy"), "witness_refused", False),
        (lambda body: http(404, b"who are you"), "witness_refused", False),
        (lambda body: http(422, b"not consistent"), "split_view", True),
        (lambda body: http(409, b"0\n"), "split_view", True),
        (lambda body: http(409, b"99999999\n"), "split_view", True),
    ],
)
def test_a_wrong_answer_is_told_by_its_kind(tmp_path: Path, say: Said, code: str, for_long: bool) -> None:
    with pytest.raises(WitnessAway) as away:
        brought(tmp_path / "data", say)
    assert (away.value.code, away.value.for_long) == (code, for_long)


def test_a_witness_whose_memory_moves_is_asked_twice_and_no_more(tmp_path: Path) -> None:
    asked: list[int] = []

    def say(body: bytes) -> bytes:
        asked.append(parse_request(body).old)
        return http(409, f"{len(asked)}\n".encode())

    with pytest.raises(WitnessAway) as away:
        brought(tmp_path / "data", say)
    assert away.value.code == "size_moved"
    assert asked == [0, 1]


def test_a_witness_that_remembers_the_checkpoint_cosigns_it_once_more(tmp_path: Path) -> None:
    """The server died after the witness had answered: no process stored the line."""
    asked: list[int] = []

    def say(body: bytes) -> bytes:
        request = parse_request(body)
        asked.append(request.old)
        return cosigning(WITNESS)(body) if request.old else http(409, f"{request.checkpoint.size}\n".encode())

    assert brought(tmp_path / "data", say)
    assert asked[0] == 0 < asked[1]


def test_the_same_line_once_more_is_right(tmp_path: Path) -> None:
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        workshop.signing.sign()
        ((size, note),) = workshop.store.checkpoints(workshop.topic, 1)
        line = cosign(WITNESS, open_checkpoint(note)[1].text, 1_790_000_000).line().encode()
        keys = [WITNESS.verifier]
        topic, signing = workshop.topic, workshop.signing
        for _ in range(2):
            kept = workshop.perform(topic, lambda unit: signing.add_cosignatures(unit, topic, line, keys))
            assert kept.size == size


def test_a_witness_that_fails_is_left_alone_longer_each_time(tmp_path: Path) -> None:
    async def rested() -> list[float]:
        with Workshop(tmp_path / "data") as workshop:
            courier = Courier("http://127.0.0.1:1", WITNESS.verifier, workshop.store, WitnessPost())
            pauses = []
            for _ in range(12):
                courier.rest(1000.0, WitnessAway("no answer"))
                pauses.append(courier.not_before - 1000.0)
            await courier.close()
            return pauses

    pauses = asyncio.run(rested())
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 300
