"""An identity provider on the loopback interface: discovery, keys and a token endpoint with answers set by tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

CLIENT_ID = "redkey at the provider"


class Provider:
    """The state and the answers of the provider."""

    def __init__(self) -> None:
        self.key: RSAPrivateKey = generate_private_key(public_exponent=65537, key_size=2048)
        self.key_id = "first"
        self.issuer = ""
        # Fields of the next ID token, which override its defaults.
        self.said: dict[str, Any] = {}
        # The requests that the token endpoint received, newest last.
        self.forms: list[dict[str, str]] = []
        self._nonce = ""

    def consent(self, location: str) -> dict[str, str]:
        """A person agrees on the provider's page; return what the browser sends back."""
        parts = urlsplit(location)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        asked = dict(parse_qsl(parts.query))
        assert (asked["client_id"], asked["code_challenge_method"]) == (CLIENT_ID, "S256")
        self._nonce = asked["nonce"]
        return {"state": asked["state"], "code": "provider code"}

    def answer(self, path: str, form: dict[str, str] | None) -> dict[str, Any]:
        """The JSON answer for one of its paths."""
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return {"issuer": self.issuer} | {name: f"{self.issuer}/{end}" for name, end in names.items()}
        if path == "/keys":
            public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
            return {"keys": [{**public, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}
        assert form is not None
        self.forms.append(form)
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "person 1",
            "nonce": self._nonce,
            "iat": now,
            "exp": now + 60,
            "email": "ada@example.com",
            "email_verified": True,
        } | self.said
        return {"id_token": jwt.encode(claims, self.key, "RS256", {"kid": self.key_id})}


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider until the block ends."""
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._reply(dict(parse_qsl(body)))

        def _reply(self, form: dict[str, str] | None) -> None:
            body = json.dumps(made.answer(self.path, form)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.issuer = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
