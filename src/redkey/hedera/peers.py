"""Servers of other organisations, asked by HTTP for bodies by their hash; nothing is believed that does not have it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256 as sha256_of

import httpx2
import structlog

# A body is fetched within this time, and not if it is larger.
_SECONDS = 30.0
_LIMIT_BYTES = 256 * 1024 * 1024
_log = structlog.get_logger("redkey.ordered")


class Peers:
    """The servers that are asked, in their order. Safe to use from several threads."""

    def __init__(self, peers: Sequence[tuple[str, str]]) -> None:
        """`peers` are addresses, each with a key that may read."""
        self._peers = [(url.rstrip("/"), key) for url, key in peers]
        self._http = httpx2.Client(timeout=_SECONDS, follow_redirects=False, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def fetch(self, sha256: str) -> bytes | None:
        """Return the body with this hash; None if no server has it now."""
        for url, key in self._peers:
            try:
                data = self._ask(url, key, sha256)
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as cause:
                _log.warning("another server does not answer", url=url, reason=repr(cause))
                continue
            if data is None:
                continue
            if sha256_of(data).hexdigest() == sha256:
                return data
            _log.warning("another server sent other bytes than were asked for", url=url, sha256=sha256)
        return None

    def _ask(self, url: str, key: str, sha256: str) -> bytes | None:
        headers = {"authorization": f"Bearer {key}"}
        with self._http.stream("GET", f"{url}/content/{sha256}", headers=headers) as response:
            if response.status_code != 200:
                if response.status_code != 404:
                    _log.warning("another server refuses a body", url=url, status=response.status_code)
                return None
            read = bytearray()
            for chunk in response.iter_bytes():
                read += chunk
                if len(read) > _LIMIT_BYTES:
                    _log.warning("a body of another server is too large", url=url, sha256=sha256)
                    return None
        return bytes(read)
