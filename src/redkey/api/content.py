"""Content over HTTP: upload and download of bodies as streams."""

from __future__ import annotations

import structlog

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.api.endpoint import Receive, Send, Stream
from redkey.errors import StoreError
from redkey.http.request import chunks, declared_size
from redkey.http.security import SECURITY
from redkey.services.use_cases import content
from redkey.shapes.content import OCTETS, KeptContent

_log = structlog.get_logger("redkey.api")


async def _put(call: Call) -> KeptContent:
    limit = call.services.config.limits.content_bytes
    declared_size(call.exchange.headers, limit)
    return await content.put_content.run(call, chunks(call.exchange.receive, limit), call.query)


async def _get(call: Call) -> ContentStream:
    sha256 = call.path["sha256"]
    return ContentStream(call, sha256, content.get_content.run(call, sha256))


# Content may come from any agent: a browser that displays it gives it no origin and runs no script in it.
_HEADERS = list(
    (dict(SECURITY) | {b"content-security-policy": b"sandbox; default-src 'none'; frame-ancestors 'none'"}).items()
)


class ContentStream(Stream):
    """A body that is sent in pieces."""

    def __init__(self, call: Call, sha256: str, body: content.ContentBody) -> None:
        self._call, self._sha256, self._body = call, sha256, body

    async def run(self, receive: Receive, send: Send) -> int:
        headers = [
            (b"content-type", OCTETS.encode()),
            (b"content-length", str(self._body.size).encode()),
            (b"content-disposition", b"attachment"),
            (b"etag", f'"{self._sha256}"'.encode()),
            *_HEADERS,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            if self._call.exchange.method != "HEAD":
                await self._send_pieces(send)
        except StoreError as broken:
            # A partial body must not look complete, so the connection is aborted.
            _log.error("content cannot be sent", code=broken.code, reason=broken.message)
            self._call.exchange.connection.abort()
            return 500
        await send({"type": "http.response.body", "body": b""})
        return 200

    async def _send_pieces(self, send: Send) -> None:
        pieces = self._body.pieces
        while (piece := await self._call.in_thread(lambda: next(pieces, None))) is not None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})


ROUTES = [
    bound(content.put_content, _put),
    bound(content.get_content, _get),
    bound(content.erase_content),
]
