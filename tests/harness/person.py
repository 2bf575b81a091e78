"""A person with a browser, and the client that asked for the login: the OAuth code flow, step by step."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

REDIRECT = "http://127.0.0.1:49152/callback"


class Browser:
    """Sends requests, follows no redirect, and keeps cookies; no connection stays open."""

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}

    def get(self, url: str) -> httpx2.Response:
        return self._send("GET", url)

    def post(self, url: str, data: Mapping[str, str], headers: Mapping[str, str] | None = None) -> httpx2.Response:
        return self._send("POST", url, data=dict(data), headers=dict(headers or {}))

    def _send(self, method: str, url: str, **more: Any) -> httpx2.Response:
        with httpx2.Client(timeout=60, follow_redirects=False, trust_env=False, cookies=self.cookies) as http:
            reply = http.request(method, url, **more)
            self.cookies.update(reply.cookies)
        return reply


class Flow:
    """One login by a client."""

    def __init__(
        self, url: str, client_id: str = "redkey-cli", redirect_uri: str = REDIRECT, **parameters: str
    ) -> None:
        self.url, self.client_id, self.redirect_uri = url, client_id, redirect_uri
        self.verifier = secrets.token_urlsafe(32)
        challenge = urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        self.asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "state": "some state",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **parameters,
        }
        self.http = Browser()

    def page(self, **changed: str) -> httpx2.Response:
        """Open the login page."""
        asked = {name: value for name, value in {**self.asked, **changed}.items() if value}
        return self.http.get(f"{self.url}/oauth/authorize?{urlencode(asked)}")

    def send(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        """Send the first form of a page, with its hidden fields and these."""
        return self.http.post(f"{self.url}/oauth/authorize", data={**hidden_fields(page.text), **fields})

    def log_in(self, email: str, code: str) -> dict[str, str]:
        """Log in by address and code; return what the client receives."""
        return answer_of(self.send(self.page(), email=email, code=code, action="allow"))

    def exchange(self, code: str, **changed: str) -> httpx2.Response:
        """Exchange an authorization code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            **changed,
        }
        return self.http.post(f"{self.url}/oauth/token", data={name: value for name, value in form.items() if value})

    def refresh(self, token: str, **changed: str) -> httpx2.Response:
        """Exchange a refresh token."""
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id, **changed}
        return self.http.post(f"{self.url}/oauth/token", data=form)

    def tokens(self, email: str, code: str) -> dict[str, Any]:
        """Log in and exchange the code; return the tokens."""
        reply = self.exchange(self.log_in(email, code)["code"])
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found


def answer_of(reply: httpx2.Response) -> dict[str, str]:
    """The parameters that a redirect sends to the client."""
    assert reply.status_code == 303, reply.text
    return dict(parse_qsl(urlsplit(reply.headers["location"]).query))


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._forms = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said: Mapping[str, str | None] = dict(attributes)
        self._forms += tag == "form"
        wanted = said.get("type") == "hidden" or "checked" in said
        if tag == "input" and wanted and self._forms == 1:
            self.found[said.get("name") or ""] = said.get("value") or ""


def hidden_fields(text: str) -> dict[str, str]:
    """The hidden and chosen fields of the first form of a page."""
    parser = _Fields()
    parser.feed(text)
    return parser.found
