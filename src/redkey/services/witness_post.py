"""How a checkpoint is sent to a witness: one POST, bounded in time and size, without redirects or proxies."""

from __future__ import annotations

import asyncio

import httpx2

from redkey.errors import WitnessAway
from redkey.services.witnessing import Answer

SECONDS = 10.0
_ANSWER_LIMIT = 64 * 1024


class WitnessPost:
    """The connections to all witnesses of a server."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._http = httpx2.AsyncClient(timeout=seconds, follow_redirects=False, trust_env=False)

    async def __call__(self, url: str, body: bytes) -> Answer:
        """Return the response to `add-checkpoint` at a witness's address; WitnessAway if none came in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._post(f"{url.rstrip('/')}/add-checkpoint", body)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError) as cause:
            raise WitnessAway(f"no answer from {url}: {cause!r}") from cause

    async def close(self) -> None:
        await self._http.aclose()

    async def _post(self, url: str, body: bytes) -> Answer:
        async with self._http.stream("POST", url, content=body) as response:
            read = bytearray()
            async for chunk in response.aiter_bytes():
                read += chunk
                if len(read) > _ANSWER_LIMIT:
                    raise WitnessAway(f"{url} answers with more than {_ANSWER_LIMIT:,} bytes")
            return Answer(response.status_code, bytes(read))
