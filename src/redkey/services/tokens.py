"""Access tokens: short-lived EdDSA JWTs (RFC 7519, RFC 9068) that represent a key, with its scopes or fewer.

PyJWT signs and verifies. Nothing in a token is used before its signature is verified, except the key id, which only
selects one of this log's own public keys. The algorithm is always EdDSA, whatever the header names. A token is invalid
once its key is revoked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from jwt.algorithms import OKPAlgorithm

from redkey.ledger.signer import Signer
from redkey.services.keys import KeyRing, Principal, passable

_CACHED = 10_000
_ALGORITHM = "EdDSA"
_TYPE = "at+jwt"


class Claims(msgspec.Struct, frozen=True):
    """The claims (RFC 7519) of an access token."""

    iss: str
    aud: str
    sub: str
    client_id: str
    scope: str
    iat: int
    exp: int
    jti: str
    # The session of a person; empty for a token of a key.
    sid: str = ""


# `holder` compares the expiry with the server's clock: `is_ours` must accept an expired token too. The issuer may be
# any server of the log, and clocks of two servers may differ, so neither `iss` nor `iat` refuses a token.
_CHECKS: Any = {
    "require": [one for one in Claims.__struct_fields__ if one != "sid"],
    "verify_exp": False,
    "verify_iat": False,
}


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
        is_live: Callable[[str, str, str], bool],
    ) -> None:
        """`issuer` is this server's address; `audience` the log, which several servers may serve.

        `is_live` says whether a person's session (topic, key, session) is live.
        """
        self._is_live = is_live
        self._signer, self._keys, self._wall, self._jti = signers[-1], keys, wall, jti
        self._issuer, self._audience = issuer, audience
        # Tokens of old keys are accepted as long as the keys exist.
        self._public_keys = {_key_id(one): one.private_key.public_key() for one in signers}
        # As RFC 7517 writes them.
        self.key_set = {"keys": [_jwk(key_id, key) for key_id, key in self._public_keys.items()]}
        self._read: dict[str, Claims] = {}

    @property
    def key_id(self) -> str:
        """Return the id of the key that signs, as the key set names it."""
        return _key_id(self._signer)

    def sign(self, data: bytes) -> bytes:
        """Return an Ed25519 signature that the key set verifies."""
        return self._signer.private_key.sign(data)

    def issue(self, principal: Principal, scopes: Sequence[str], seconds: int, session_id: str = "") -> str:
        """Issue a token for the holder of a key, or for a session of a person."""
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
            sid=session_id,
        )
        header = {"typ": _TYPE, "kid": _key_id(self._signer)}
        said = msgspec.structs.asdict(claims)
        if not session_id:
            del said["sid"]
        return jwt.encode(said, self._signer.private_key, _ALGORITHM, header)

    def holder(self, token: str) -> Principal | None:
        """Return the holder of a valid token, with the scopes that it grants and its key still has."""
        claims = self._read.get(token) or self._verify(token)
        if claims is None or claims.exp <= self._wall():
            self._read.pop(token, None)
            return None
        principal = self._keys.holder(claims.client_id)
        if principal is None or principal.actor.key_id != claims.sub:
            return None
        if claims.sid and not self._is_live(principal.topic, claims.sub, claims.sid):
            return None
        scopes = passable(principal.actor.scopes) & set(claims.scope.split())
        actor = msgspec.structs.replace(principal.actor, scopes=scopes)
        return msgspec.structs.replace(principal, actor=actor, expires_at=claims.exp, session_id=claims.sid)

    def is_ours(self, token: str) -> bool:
        """True if this log's server signed the token, even if it has expired or was revoked since."""
        return self._verify(token) is not None

    def _verify(self, token: str) -> Claims | None:
        try:
            header = jwt.get_unverified_header(token)
            key = self._public_keys.get(header.get("kid", ""))
            if key is None or header.get("typ") != _TYPE:
                return None
            said = jwt.decode(token, key, [_ALGORITHM], audience=self._audience, options=_CHECKS)
            claims = msgspec.convert(said, Claims)
        except (jwt.PyJWTError, msgspec.ValidationError):
            return None
        if len(self._read) >= _CACHED:
            self._read.pop(next(iter(self._read)))
        self._read[token] = claims
        return claims


def _key_id(signer: Signer) -> str:
    return signer.verifier.key_id.hex()


def _jwk(key_id: str, key: Ed25519PublicKey) -> dict[str, Any]:
    return {**OKPAlgorithm.to_jwk(key, as_dict=True), "kid": key_id, "use": "sig", "alg": _ALGORITHM}
