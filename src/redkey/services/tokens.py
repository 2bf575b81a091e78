"""Access tokens: short-lived EdDSA JWTs (RFC 7519, RFC 9068) that stand for a key, with its scopes or fewer.

Tokens are read without believing anything in them before the signature holds: the header is compared with the one
this server writes, so no algorithm can be talked into. A token is worth nothing once its key is revoked.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from redkey.ledger.signer import Signer
from redkey.services.keys import KeyRing, Principal, passable

_CACHED = 10_000


class Claims(msgspec.Struct, frozen=True):
    """What a token says."""

    iss: str
    aud: str
    sub: str
    client_id: str
    scope: str
    iat: int
    exp: int
    jti: str


class Tokens:
    """Issues and reads the tokens of one server."""

    def __init__(
        self,
        signers: Sequence[Signer],
        keys: KeyRing,
        issuer: str,
        audience: str,
        wall: Callable[[], float],
        jti: Callable[[], str],
    ) -> None:
        """`issuer` is this server's address; `audience` the log, which several servers may serve."""
        self._signer, self._keys, self._wall, self._jti = signers[-1], keys, wall, jti
        self._issuer, self._audience = issuer, audience
        self._header = _header(self._signer)
        # header -> the key that signs under it; old keys are read as long as they are there.
        self._readers = {_header(one): _public(one) for one in signers}
        self._jwks = [_jwk(one) for one in signers]
        self._read: dict[str, Claims] = {}

    @property
    def key_set(self) -> dict[str, Any]:
        """The public keys, as RFC 7517 writes them."""
        return {"keys": self._jwks}

    def issue(self, principal: Principal, scopes: Sequence[str], seconds: int) -> str:
        """A token for the holder of a key."""
        now = int(self._wall())
        claims = Claims(
            iss=self._issuer,
            aud=self._audience,
            sub=principal.actor.key_id,
            client_id=principal.public_id,
            scope=" ".join(scopes),
            iat=now,
            exp=now + seconds,
            jti=self._jti(),
        )
        signed = f"{self._header}.{_pack(msgspec.json.encode(claims))}"
        return f"{signed}.{_pack(self._signer.sign_bytes(signed.encode()))}"

    def holder(self, token: str) -> Principal | None:
        """The holder of a valid token, with the scopes that it grants and its key still has."""
        claims = self._read.get(token) or self._verify(token)
        if claims is None or claims.exp <= self._wall():
            self._read.pop(token, None)
            return None
        principal = self._keys.holder(claims.client_id)
        if principal is None or principal.actor.key_id != claims.sub:
            return None
        scopes = passable(principal.actor.scopes) & set(claims.scope.split())
        actor = msgspec.structs.replace(principal.actor, scopes=scopes)
        return msgspec.structs.replace(principal, actor=actor, expires_at=claims.exp)

    def is_ours(self, token: str) -> bool:
        """True when this log's server signed the token, whatever became of it since."""
        return self._verify(token) is not None

    def _verify(self, token: str) -> Claims | None:
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        key = self._readers.get(header)
        if key is None:
            return None
        try:
            key.verify(_unpack(signature), signed.encode())
            claims = msgspec.json.decode(_unpack(payload), type=Claims)
        except (InvalidSignature, ValueError, msgspec.DecodeError):
            return None
        if claims.aud != self._audience:
            return None
        if len(self._read) >= _CACHED:
            self._read.pop(next(iter(self._read)))
        self._read[token] = claims
        return claims


def _header(signer: Signer) -> str:
    return _pack(msgspec.json.encode({"alg": "EdDSA", "typ": "at+jwt", "kid": signer.verifier.key_id.hex()}))


def _public(signer: Signer) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(signer.verifier.public_key)


def _jwk(signer: Signer) -> dict[str, str]:
    key = signer.verifier
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": _pack(key.public_key),
        "kid": key.key_id.hex(),
        "use": "sig",
        "alg": "EdDSA",
    }


def _pack(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpack(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
