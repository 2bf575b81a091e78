"""OAuth clients: who may ask a person to log in, and where the browser may be sent afterwards.

Two clients are built in: the command line and the Studio. Any other registers itself (RFC 7591), as MCP clients do.
Nothing is stored for it: its id holds its name and redirect URIs, signed by this log, so that registration costs
nothing and cannot fill the store. All clients are public: they have no secret, and PKCE binds a code to its client.

A redirect URI must equal a registered one. On the loopback interface the port may differ, because a native program
takes a free one (RFC 8252, section 7.3).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from redkey.commands.decision import Refused
from redkey.services.keys import KeyRing

CLI, STUDIO = "redkey-cli", "redkey-studio"
_PREFIX = "rkd_"
_URIS, _URI_LENGTH, _NAME_LENGTH = 5, 200, 80
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# Editors whose scheme has no dot; other private schemes are reversed domain names (RFC 8252, section 7.1).
_EDITORS = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf"})


class OAuthClient(msgspec.Struct, frozen=True):
    """A client: its id, the name that it gives itself, and its redirect URIs."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]

    def accepts(self, redirect_uri: str) -> bool:
        """True if the browser may be sent there."""
        if not redirect_uri.isascii() or not redirect_uri.isprintable():
            return False
        return any(redirect_uri == one or _differ_by_port(redirect_uri, one) for one in self.redirect_uris)


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    name: str
    redirect_uris: tuple[str, ...]


def find_client(keys: KeyRing, public_url: str, client_id: str) -> OAuthClient | None:
    """Return the client with an id; None if there is none."""
    if client_id == CLI:
        return OAuthClient(CLI, "RedKey command line", ("http://127.0.0.1/callback",))
    if client_id == STUDIO:
        own = f"{public_url}/studio/"
        return OAuthClient(STUDIO, "RedKey Studio", (own, *(f"http://{host}/studio/" for host in _hosts())))
    packed, _, proof = client_id.removeprefix(_PREFIX).partition(".")
    if not client_id.startswith(_PREFIX) or not keys.same(proof, _proof(keys, packed)):
        return None
    found = msgspec.json.decode(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), type=_Packed)
    return OAuthClient(client_id, found.name, found.redirect_uris)


def register_client(keys: KeyRing, name: str, redirect_uris: Sequence[str]) -> OAuthClient:
    """Return a new client whose id holds its whole registration; Refused if its metadata is wrong."""
    if not 1 <= len(redirect_uris) <= _URIS:
        raise Refused(400, "invalid_redirect_uri", f"Register one to {_URIS} redirect_uris.")
    for uri in redirect_uris:
        _check(uri)
    shown = " ".join("".join(one if one.isprintable() else " " for one in name).split())[:_NAME_LENGTH]
    text = msgspec.json.encode(_Packed(shown or "A client without a name", tuple(redirect_uris)))
    packed = urlsafe_b64encode(text).rstrip(b"=").decode()
    return OAuthClient(f"{_PREFIX}{packed}.{_proof(keys, packed)}", shown, tuple(redirect_uris))


def origin_of(redirect_uri: str) -> str:
    """Return the target of a redirect as a Content-Security-Policy names it: an origin, or a private scheme."""
    parts = urlsplit(redirect_uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _proof(keys: KeyRing, packed: str) -> str:
    return keys.derived(f"client/{packed}").hex()[:32]


def _hosts() -> tuple[str, ...]:
    return ("127.0.0.1", "localhost", "[::1]")


def _check(uri: str) -> None:
    try:
        parts = urlsplit(uri)
        # Reading the port checks it.
        right = len(uri) <= _URI_LENGTH and uri.isascii() and uri.isprintable() and " " not in uri and parts.port != 0
    except ValueError:
        right = False
    if (
        not right
        or parts.fragment
        or "#" in uri
        or parts.username is not None
        or any(one in uri for one in "\\\"'<>;,")
    ):
        raise Refused(400, "invalid_redirect_uri", f"This is not a redirect URI that can be used: {uri[:100]!r}.")
    scheme = parts.scheme
    known = (
        (scheme == "https" and bool(parts.hostname))
        or (scheme == "http" and parts.hostname in _LOOPBACK)
        or "." in scheme
        or scheme in _EDITORS
    )
    if not known:
        detail = "A redirect URI is https, http on the loopback interface, or the private scheme of a program."
        raise Refused(400, "invalid_redirect_uri", detail)


def _differ_by_port(redirect_uri: str, registered: str) -> bool:
    """True for two loopback addresses with the same host, path and query, whatever their ports are."""
    try:
        one, other = urlsplit(redirect_uri), urlsplit(registered)
        ports = (one.port, other.port)
    except ValueError:
        return False
    if one.scheme != "http" or other.hostname not in _LOOPBACK or 0 in ports or one.username is not None:
        return False
    if one.fragment or "#" in redirect_uri or "\\" in redirect_uri or any(char in redirect_uri for char in "\"'<>;, "):
        return False
    same = (one.hostname, one.path, one.query) == (other.hostname, other.path, other.query)
    # Only plain characters: no other reader can take it for another host.
    host = f"[{one.hostname}]" if ":" in (one.hostname or "") else one.hostname
    return same and one.netloc == (host if one.port is None else f"{host}:{one.port}")
