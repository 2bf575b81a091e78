"""Content by its use cases: kept whole or not at all, one act each, read in pieces, erased on the record."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_cases.content import erase_content, get_content, put_content
from redkey.shapes.content import PutQuery
from tests.harness.callers import Callers, with_callers

LARGE = b"0123456789abcdef" * 200_000


async def in_chunks(data: bytes, size: int = 64 * 1024) -> AsyncIterator[bytes]:
    for first in range(0, len(data), size):
        yield data[first : first + size]


async def broken_off(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise ConnectionResetError


@pytest.mark.parametrize("data", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_a_body_comes_back_as_it_was_put(tmp_path: Path, data: bytes) -> None:
    async def test(callers: Callers) -> None:
        kept = await callers.call(put_content, in_chunks(data), PutQuery(), caller=callers.caller("produce"))
        assert (kept.sha256, kept.bytes) == (sha256(data).hexdigest(), len(data))
        body = await callers.call(get_content, kept.sha256)
        assert body.size == len(data)
        assert b"".join(body.pieces) == data

    with_callers(tmp_path, test)


def test_a_body_with_a_wrong_hash_is_not_stored(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(Refused) as failed:
            await callers.call(put_content, in_chunks(LARGE), PutQuery(sha256="0" * 64))
        assert (failed.value.status, failed.value.code) == (422, "content_hash")
        with pytest.raises(Refused) as failed:
            await callers.call(get_content, sha256(LARGE).hexdigest())
        assert failed.value.status == 404

    with_callers(tmp_path, test)
    assert not list((tmp_path / "content" / "incoming").iterdir())


def test_an_incomplete_body_is_not_stored(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(ConnectionResetError):
            await callers.call(put_content, broken_off(LARGE), PutQuery())
        assert callers.store.content_facts(callers.topic, sha256(LARGE).hexdigest()) is None

    with_callers(tmp_path, test)
    assert not list((tmp_path / "content" / "incoming").iterdir())


def test_erased_content_is_gone_and_its_hash_is_on_the_record(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        kept = await callers.call(put_content, in_chunks(LARGE), PutQuery())
        erased = await callers.call(erase_content, kept.sha256)
        assert (erased.sha256, erased.status) == (kept.sha256, "erased")
        for use in (get_content, erase_content):
            with pytest.raises(Refused) as failed:
                await callers.call(use, kept.sha256)
            assert (failed.value.status, failed.value.code) == (404, "content_not_found")

    with_callers(tmp_path, test)
