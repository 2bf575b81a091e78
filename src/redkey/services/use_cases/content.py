"""Content by its hash: uploaded, downloaded, erased. The ledger has its hash and never its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial

import msgspec

from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import EraseContent
from redkey.ledger.ports import Upload
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_case import use_case
from redkey.shapes import content
from redkey.shapes.content import ErasedContent, KeptContent, PutQuery
from redkey.wire.events import ContentErased

# Chunks are collected up to this size and written by a thread: a thread call for each would cost more than the write.
_HANDED_OVER = 1024 * 1024


class ContentBody(msgspec.Struct, frozen=True):
    """A body: its size, and its pieces, which are read one by one. Read them in a thread."""

    size: int
    pieces: Iterator[bytes]


@use_case(content.PUT_CONTENT)
async def put_content(caller: Caller, chunks: AsyncIterator[bytes], asked: PutQuery) -> KeptContent:
    """Keep a body under its SHA-256."""
    upload = caller.means.store.upload()
    try:
        await _receive(caller, upload, chunks)
        sha256 = await caller.in_thread(upload.finish)
        if asked.sha256 is not None and asked.sha256 != sha256:
            raise Refused(422, "content_hash", f"The body has the SHA-256 {sha256}.")
        await caller.act(lambda unit: unit.adopt(caller.topic, upload))
        return KeptContent(sha256=sha256, bytes=upload.size)
    finally:
        await caller.in_thread(upload.discard)


async def _receive(caller: Caller, upload: Upload, chunks: AsyncIterator[bytes]) -> None:
    waiting = bytearray()
    async for chunk in chunks:
        waiting += chunk
        if len(waiting) >= _HANDED_OVER:
            await caller.in_thread(partial(upload.write, bytes(waiting)))
            waiting.clear()
    upload.write(bytes(waiting))


@use_case(content.GET_CONTENT)
def get_content(caller: Caller, sha256: str) -> ContentBody:
    """A body."""
    store = caller.means.store
    facts = store.content_facts(caller.topic, sha256)
    if facts is None:
        raise not_found("content")
    return ContentBody(facts.bytes, store.content_chunks(caller.topic, sha256))


@use_case(content.ERASE_CONTENT)
def erase_content(caller: Caller, sha256: str) -> Pending[ErasedContent]:
    """Erase a body; that it was there stays on the record."""

    def reply(outcome: Outcome, place: Place) -> ErasedContent:
        erased = outcome.payload(ContentErased)
        return ErasedContent(sha256=erased.sha256, status="erased", event_id=outcome.event_id)

    return Pending(EraseContent(sha256), reply)
