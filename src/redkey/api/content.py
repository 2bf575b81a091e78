"""Content by its hash: streamed in, streamed out, erased. The ledger names it and never holds it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

import msgspec
import structlog

from redkey.api.adapter import Receive, Send, Stream
from redkey.api.call import Call
from redkey.api.fields import Body, Sha256
from redkey.commands.decision import not_found
from redkey.commands.registry import EraseContent
from redkey.errors import StoreError
from redkey.http.problems import Declined
from redkey.http.request import chunks, declared_size
from redkey.http.route import ADMIN, AGENT, PRODUCE, READ, Route
from redkey.http.security import SECURITY
from redkey.ledger.ports import Upload
from redkey.wire.ids import event_id

_log = structlog.get_logger("redkey.api")
OCTETS = "application/octet-stream"
# Chunks of this size together are written by a thread: one hop for each would cost more than the write.
_HANDED_OVER = 1024 * 1024


class PutQuery(Body, frozen=True, kw_only=True):
    """The hash that the body should have; a body with another one is refused."""

    sha256: Sha256 | None = None


class Kept(msgspec.Struct, frozen=True, rename="camel"):
    """Content that is kept: its name and its size."""

    sha256: str
    bytes: int


class Erased(msgspec.Struct, frozen=True, rename="camel"):
    """Content that is gone; its hash stays on the ledger."""

    sha256: str
    status: Literal["erased"]
    event_id: str


async def put_content(call: Call) -> Kept:
    """Keep a body under its SHA-256."""
    limits = call.services.config.limits
    declared_size(call.exchange.headers, limits.content_bytes)
    upload = call.services.store.upload()
    try:
        await _receive(call, upload)
        sha256 = await call.in_thread(upload.finish)
        if call.query.sha256 is not None and call.query.sha256 != sha256:
            raise Declined(422, "content_hash", f"The body has the SHA-256 {sha256}.")
        await call.in_thread(lambda: _keep(call, upload))
        return Kept(sha256, upload.size)
    finally:
        await call.in_thread(upload.discard)


async def _receive(call: Call, upload: Upload) -> None:
    waiting = bytearray()
    async for chunk in chunks(call.exchange.receive, call.services.config.limits.content_bytes):
        waiting += chunk
        if len(waiting) >= _HANDED_OVER:
            await call.in_thread(partial(upload.write, bytes(waiting)))
            waiting.clear()
    upload.write(bytes(waiting))


def _keep(call: Call, upload: Upload) -> None:
    with call.services.store.write() as unit:
        unit.take_upload(call.topic, upload)


async def get_content(call: Call) -> ContentStream:
    """A body."""
    sha256 = call.path["sha256"]
    facts = call.services.store.content_facts(call.topic, sha256)
    if facts is None:
        raise not_found("content")
    return ContentStream(call, sha256, facts.bytes)


async def erase_content(call: Call) -> Erased:
    """Erase a body; that it was there stays on the record."""
    outcome = await call.submit(EraseContent(call.path["sha256"]))
    wire = outcome.records[0].wire
    return Erased(wire["payload"]["sha256"], "erased", event_id(wire["wire_id"]))


class ContentStream(Stream):
    """A body on its way out, a piece at a time."""

    def __init__(self, call: Call, sha256: str, size: int) -> None:
        self._call, self._sha256, self._size = call, sha256, size

    async def run(self, receive: Receive, send: Send) -> int:
        headers = [
            (b"content-type", OCTETS.encode()),
            (b"content-length", str(self._size).encode()),
            (b"content-disposition", b"attachment"),
            (b"etag", f'"{self._sha256}"'.encode()),
            *SECURITY,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            if self._call.exchange.method != "HEAD":
                await self._send_pieces(send)
        except StoreError as broken:
            # Half of a body must not look like all of it.
            _log.error("content cannot be sent", code=broken.code, reason=broken.message)
            self._call.exchange.connection.abort()
            return 500
        await send({"type": "http.response.body", "body": b""})
        return 200

    async def _send_pieces(self, send: Send) -> None:
        store, topic = self._call.services.store, self._call.topic
        pieces: Iterator[bytes] = store.content_chunks(topic, self._sha256)
        while (piece := await self._call.in_thread(lambda: next(pieces, None))) is not None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})


_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
ROUTES = [
    Route(
        "PUT",
        "/content",
        put_content,
        (*PRODUCE, *AGENT),
        query=PutQuery,
        reply=Kept,
        status=201,
        summary="Keep a body of up to 1 GiB under its SHA-256.",
        streamed=True,
        body_limit="content_bytes",
        consumes=OCTETS,
        reply_example={"sha256": _SHA256, "bytes": 4},
    ),
    Route("GET", "/content/{sha256}", get_content, READ, summary="A body.", media=(OCTETS,)),
    Route(
        "DELETE",
        "/content/{sha256}",
        erase_content,
        ADMIN,
        reply=Erased,
        summary="Erase a body. Its hash stays on the ledger, its bytes are gone.",
        replies={409: "The content is structure that replay needs."},
        reply_example={"sha256": _SHA256, "status": "erased", "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"},
    ),
]
