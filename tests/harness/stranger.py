"""A caller that knows only RedKey's documents: plain HTTP requests with the standard library."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 70.0


class Answer:
    """An answer: status, headers, and the body, parsed if it is JSON."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Stranger:
    """Sends requests as documents describe them: method, path, body."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url, self.key = url, key

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, raw: str | None = None
    ) -> Answer:
        """`raw` is a body that is sent unchanged, with the content type in `headers`."""
        target = urlsplit(self.url)
        sent = {"host": target.netloc, **({"authorization": f"Bearer {self.key}"} if self.key else {})}
        data = raw.encode() if raw is not None else None if body is None else json.dumps(body).encode()
        if body is not None:
            sent["content-type"] = "application/json"
        connection = http.client.HTTPConnection(str(target.hostname), target.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, data, sent | (headers or {}))
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed; return its JSON."""
        answer = self(method, path, body)
        assert answer.status in (200, 201), f"{method} {path}: {answer.status} {answer.text}"
        return answer.json
