"""The transport of the async client over httpx2: the same as `carrier`, awaited."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from redkey.client.carrier import FAILURES, PIECE_BYTES, broken, build_request, client_options
from redkey.client.flow import OPENED, Answer, Broken, Send
from redkey.client.policy import Policy
from redkey.client.settings import Settings


class AsyncCarrier:
    """Sends requests over one httpx2 client."""

    def __init__(
        self, settings: Settings, policy: Policy, tls: ssl.SSLContext | None, given: httpx2.AsyncBaseTransport | None
    ) -> None:
        self._http = httpx2.AsyncClient(**client_options(settings, policy, tls, given, httpx2.AsyncHTTPTransport))
        self._settings = settings

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, sending: Send) -> Answer | Broken:
        try:
            response = await self._http.send(self._build(sending))
        except FAILURES as failure:
            return broken(failure)
        return Answer(response.status_code, response.headers, response.content)

    async def open(self, sending: Send, opened: AsyncOpened) -> Any:
        """Start to read a response: return `OPENED` for a success, otherwise an `Answer` or `Broken`."""
        await opened.close()
        try:
            response = await self._http.send(self._build(sending), stream=True)
            if response.is_success:
                opened.take(response)
                return OPENED
            try:
                return Answer(response.status_code, response.headers, await response.aread())
            finally:
                await response.aclose()
        except FAILURES as failure:
            return broken(failure)

    def _build(self, sending: Send) -> httpx2.Request:
        return build_request(self._http, sending, self._settings, _pieces)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
    finally:
        file.close()


class AsyncOpened:
    """The streamed response that is being read, if any."""

    def __init__(self) -> None:
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    def take(self, response: httpx2.Response) -> None:
        self._response, self._chunks = response, response.aiter_bytes()

    async def read(self) -> bytes | Broken:
        try:
            return await anext(self._chunks, b"") if self._chunks is not None else b""
        except FAILURES as failure:
            return broken(failure)

    async def close(self) -> None:
        if self._response is not None:
            await self._response.aclose()
        self._response = self._chunks = None
