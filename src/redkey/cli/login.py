"""`redkey login`: a person logs in by the browser; the command line then acts for the person."""

from __future__ import annotations

import os
import secrets
import time
import webbrowser
from base64 import urlsafe_b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import click

from redkey.cli.report import print_json
from redkey.cli.session import json_option
from redkey.client.kept_login import CLIENT_ID, find_login, keep_login, tokens_of

_WAIT_SECONDS = 600
_TIMEOUT_SECONDS = 30.0
_DONE = (
    b"<!doctype html><meta charset=utf-8><title>RedKey</title><p>You can close this page and go back to the terminal."
)


class _Callback(HTTPServer):
    """Waits on the loopback interface for the browser's redirect."""

    answer: dict[str, str] | None = None
    state = ""


class _Page(BaseHTTPRequestHandler):
    server: _Callback

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        said = {name: values[0] for name, values in parse_qs(parts.query).items()}
        # Only a request with the right state counts, because other programs or sites may call this port too.
        right = parts.path == "/callback" and secrets.compare_digest(said.get("state", ""), self.server.state)
        self.send_response(200 if right else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-security-policy", "default-src 'none'")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(_DONE if right else b"")
        if right:
            self.server.answer = said

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing, because the URL contains a code."""


@click.command()
@click.argument("url", required=False)
@click.option("--scope", metavar="SCOPES", default="", help="Fewer rights than all of yours, such as read.")
@click.option("--no-browser", is_flag=True, help="Print the address only; open it in a browser of this machine.")
@json_option
def command(url: str | None, scope: str, no_browser: bool, as_json: bool) -> None:
    """Log in to the server at URL by the browser, as a person whom an admin has invited.

    From then on `redkey` acts for you there, where no key is set. An admin invites people with `redkey person invite`.

    \b
      redkey login https://redkey.example.com
      redkey login https://redkey.example.com --scope read
    """
    base = _server(url)
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    with _Callback(("127.0.0.1", 0), _Page) as callback:
        callback.state, callback.timeout = state, 1
        redirect_uri = f"http://127.0.0.1:{callback.server_port}/callback"
        asked = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **({"scope": scope} if scope else {}),
        }
        address = f"{base}/oauth/authorize?{urlencode(asked)}"
        click.echo(f"Open this page in a browser of this machine:\n\n  {address}\n", err=True)
        if not no_browser:
            webbrowser.open(address)
        until = time.monotonic() + _WAIT_SECONDS
        while callback.answer is None and time.monotonic() < until:
            callback.handle_request()
        answer = callback.answer
    if answer is None:
        raise click.ClickException("nobody logged in within ten minutes; run the command again")
    if "code" not in answer:
        detail = answer.get("error_description") or answer.get("error", "no code came back")
        raise click.ClickException(f"not logged in: {detail}")
    _finish(base, {"code": answer["code"], "redirect_uri": redirect_uri, "code_verifier": verifier}, as_json)


def _finish(base: str, form: dict[str, str], as_json: bool) -> None:
    import httpx2

    now = time.time()
    try:
        reply = httpx2.post(
            f"{base}/oauth/token",
            data={"grant_type": "authorization_code", "client_id": CLIENT_ID, **form},
            timeout=_TIMEOUT_SECONDS,
        )
        if reply.status_code != 200:
            raise click.ClickException(f"not logged in: {reply.json().get('error_description', reply.status_code)}")
        tokens = tokens_of(reply.json(), now)
    except (httpx2.HTTPError, KeyError, ValueError) as cause:
        raise click.ClickException(f"not logged in: {base} did not answer as RedKey does ({cause})") from cause
    path = keep_login(base, tokens, os.environ)
    if as_json:
        print_json({"url": base, "scope": tokens.scope, "file": str(path)})
    else:
        click.echo(f"logged in at {base} ({tokens.scope})")


def _server(url: str | None) -> str:
    """Return the address of the server: the given one, or that of the last login."""
    found = url or os.environ.get("REDKEY_URL", "")
    login = None if found else find_login(None, os.environ)
    found = (found or (login.url if login is not None else "")).rstrip("/")
    if not found:
        raise click.UsageError("name the server: redkey login https://redkey.example.com")
    if "://" not in found:
        found = f"https://{found}"
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username is not None:
        raise click.UsageError(f"{found} does not name a server: use https://host or http://127.0.0.1:port")
    return found
