"""The Agent Card of this server: its name, addresses and security schemes; signed (JWS over RFC 8785).

The skills of the public card are the roles that the operator publishes. The skills of the extended card are the roles
of the caller's workspace.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime
from hashlib import sha256
from typing import Any

import msgspec

from redkey import __version__
from redkey.a2a.compat import serves_older
from redkey.http.exchange import Exchange, header_lines
from redkey.http.security import SECURITY
from redkey.services.means import Means
from redkey.services.use_cases.a2a_cards import list_public_skills
from redkey.shapes.roles import Role
from redkey.wire.a2a import LEDGER
from redkey.wire.canonical import canonical

Json = dict[str, Any]

PATH = "/.well-known/agent-card.json"
_CACHE = b"public, max-age=60"
_MODES = ["text/plain", "application/json", "application/octet-stream"]
_SCOPES = {
    "produce": "Send messages, cancel tasks, follow them.",
    "read": "Read and follow tasks.",
}


class Cards:
    """Writes and signs the cards of one server."""

    def __init__(self, means: Means, workspace_id: str) -> None:
        self._means, self._workspace_id = means, workspace_id
        # The address of the gRPC port; empty until it listens.
        self.grpc_url = ""
        # The bytes of the public card as last served, and since when they have been the same.
        self._served: tuple[bytes, float] = (b"", 0.0)

    def public(self) -> Json:
        """Return the public card; it needs no key."""
        return self._signed(self._card(list_public_skills(self._means, self._workspace_id)))

    def extended(self, roles: Sequence[Role]) -> Json:
        """Return the card for an authenticated caller."""
        return self._signed(self._card(roles))

    def answer(self, exchange: Exchange) -> None:
        """Serve the public card, with ETag and Last-Modified."""
        body = msgspec.json.encode(self.public())
        if self._served[0] != body:
            # Last-Modified has whole seconds: a card that changes twice within one second gets the next second.
            self._served = body, max(time.time(), int(self._served[1]) + 1)
        etag = b'"%b"' % sha256(body).hexdigest()[:32].encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", _CACHE),
            (b"etag", etag),
            (b"last-modified", formatdate(self._served[1], usegmt=True).encode()),
            (b"access-control-allow-origin", b"*"),
            *SECURITY,
        ]
        unchanged = _is_known(exchange.headers, etag, self._served[1])
        exchange.reply(304 if unchanged else 200, header_lines(headers), b"" if unchanged else body)

    def _card(self, roles: Sequence[Role]) -> Json:
        config = self._means.config
        url = config.public_url
        interfaces = [("JSONRPC", f"{url}/a2a", "1.0"), ("HTTP+JSON", f"{url}/a2a", "1.0")]
        interfaces += [("GRPC", self.grpc_url, "1.0")] if self.grpc_url else []
        if serves_older():
            interfaces += [("JSONRPC", f"{url}/a2a", "0.3"), ("HTTP+JSON", f"{url}/a2a", "0.3")]
            interfaces += [("GRPC", self.grpc_url, "0.3")] if self.grpc_url else []
        card: Json = {
            "name": config.a2a.name,
            "description": config.a2a.description,
            "supportedInterfaces": [
                {"url": place, "protocolBinding": binding, "protocolVersion": version}
                for binding, place, version in interfaces
            ],
            "version": __version__,
            "documentationUrl": f"{url}/docs",
            "capabilities": {
                "streaming": True,
                "pushNotifications": True,
                "extendedAgentCard": True,
                "extensions": [
                    {
                        "uri": LEDGER,
                        "description": "Sequence, event id, position, receipt and extensions of each object; "
                        "lineage of each task.",
                    }
                ],
            },
            "securitySchemes": {
                "key": {
                    "httpAuthSecurityScheme": {
                        "description": "An API key of RedKey, or an access token.",
                        "scheme": "Bearer",
                    }
                },
                "oauth": {
                    "oauth2SecurityScheme": {
                        "description": "Client credentials: the public id of an API key and its secret.",
                        "flows": {"clientCredentials": {"tokenUrl": f"{url}/oauth/token", "scopes": _SCOPES}},
                        "oauth2MetadataUrl": f"{url}/.well-known/oauth-authorization-server",
                    }
                },
            },
            "securityRequirements": [{"schemes": {"key": {}}}, {"schemes": {"oauth": {"list": ["produce"]}}}],
            "defaultInputModes": _MODES,
            "defaultOutputModes": _MODES,
            "skills": [_skill(role) for role in roles] or [_ANY_SKILL],
        }
        return card

    def _signed(self, card: Json) -> Json:
        """Return the card with a signature; the key is in this server's `/.well-known/jwks.json`."""
        tokens = self._means.tokens
        header = {
            "alg": "EdDSA",
            "typ": "JOSE",
            "kid": tokens.key_id,
            "jku": f"{self._means.config.public_url}/.well-known/jwks.json",
        }
        protected, payload = _base64(canonical(header)), _base64(canonical(_without_empty(card)))
        signature = _base64(tokens.sign(f"{protected}.{payload}".encode()))
        return card | {"signatures": [{"protected": protected, "signature": signature}]}


# The skill of a card without roles: every workspace accepts tasks.
_ANY_SKILL = {
    "id": "task",
    "name": "Work on a task",
    "description": "Takes a task, gives it to an agent that may do it, and returns its results.",
    "tags": ["task", "queue"],
}


def _is_known(headers: Mapping[bytes, bytes], etag: bytes, since: float) -> bool:
    """Return whether the client has this card already; If-None-Match takes precedence (RFC 9110)."""
    if b"if-none-match" in headers:
        known = [tag.strip().removeprefix(b"W/") for tag in headers[b"if-none-match"].split(b",")]
        return etag in known or b"*" in known
    try:
        seen = parsedate_to_datetime(headers.get(b"if-modified-since", b"").decode("latin-1"))
    except ValueError:
        return False
    # If-Modified-Since has whole seconds.
    return int(since) <= seen.timestamp()


def _skill(role: Role) -> Json:
    name = role.name or role.id
    return {
        "id": role.id.removeprefix("role_"),
        "name": name,
        "description": role.description or f"Tasks for the role {name}.",
        "tags": list(role.capabilities) or ["task"],
    }


def _without_empty(value: Any) -> Any:
    """Return the card without empty values, as A2A signatures require."""
    if isinstance(value, dict):
        return {name: part for name, item in value.items() if (part := _without_empty(item)) not in ({}, [], "")}
    if isinstance(value, list):
        return [part for item in value if (part := _without_empty(item)) not in ({}, [], "")]
    return value


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
