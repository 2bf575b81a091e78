"""Signatures on A2A cards: JWS (RFC 7515) over the card's canonical JSON (RFC 8785), under pinned keys only.

A signature's header is used only to find the pinned key by its `kid`. The algorithm is the key's, and URLs of keys are
never followed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redkey.errors import JsonRefused, KeyRefused
from redkey.wire.a2a_card import Signature
from redkey.wire.canonical import canonical
from redkey.wire.decode import decode

if TYPE_CHECKING:
    from jwt import PyJWK

# Asymmetric algorithms only: a shared secret or no signature at all proves nothing to a third party.
ALGORITHMS = frozenset({"EdDSA", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"})


class PinnedKeys:
    """The public keys that the operator trusts to sign cards, by key id."""

    def __init__(self, keys: Iterable[dict[str, Any]] = ()) -> None:
        self._keys: dict[str, PyJWK] = {}
        for key in keys:
            made = _read_key(key)
            self._keys[made.key_id or ""] = made

    def verify(self, card: dict[str, Any], signatures: Sequence[Signature]) -> str:
        """Return the id of a pinned key that signed the card; empty if none did."""
        if not self._keys:
            return ""
        unsigned = {name: value for name, value in card.items() if name != "signatures"}
        # Signers write a card with or without its empty fields; both forms mean the same.
        payloads = {canonical(unsigned), canonical(_without_empty(unsigned) or {})}
        for signature in signatures:
            key = self._keys.get(_key_id(signature))
            if key is not None and any(_is_signed(key, signature, payload) for payload in payloads):
                return key.key_id or ""
        return ""


def load_pinned(paths: Iterable[str]) -> PinnedKeys:
    """Read the keys of JWK set files; KeyRefused if a file holds none."""
    keys: list[dict[str, Any]] = []
    for path in paths:
        try:
            value = decode(Path(path).read_bytes())
        except (OSError, JsonRefused) as cause:
            raise KeyRefused(f"{path} is not a JWK set: {cause}") from cause
        found = value.get("keys") if isinstance(value, dict) else None
        if not isinstance(found, list) or not all(isinstance(key, dict) for key in found):
            raise KeyRefused(f"{path} is not a JWK set: it has no list of keys")
        keys.extend(found)
    return PinnedKeys(keys)


def _read_key(value: dict[str, Any]) -> PyJWK:
    from jwt import PyJWK, PyJWTError

    try:
        key = PyJWK(value)
    except (PyJWTError, ValueError, TypeError) as cause:
        raise KeyRefused(f"a pinned key cannot be used: {cause}") from cause
    if not key.key_id:
        raise KeyRefused("a pinned key has no kid")
    if key.algorithm_name not in ALGORITHMS:
        raise KeyRefused(
            f"the pinned key {key.key_id} is for {key.algorithm_name}, which is not a public-key signature"
        )
    if "d" in value:
        raise KeyRefused(f"the pinned key {key.key_id} is a private key; pin its public half")
    return key


def _key_id(signature: Signature) -> str:
    header = _header(signature.protected)
    kid = header.get("kid") if header is not None else None
    # This verifier knows no critical extensions (`crit`), so it does not accept them.
    return kid if isinstance(kid, str) and header is not None and "crit" not in header else ""


def _header(protected: str) -> dict[str, Any] | None:
    try:
        value = decode(base64.urlsafe_b64decode(protected + "=" * (-len(protected) % 4)))
    except (binascii.Error, ValueError, JsonRefused):
        return None
    return value if isinstance(value, dict) else None


def _is_signed(key: PyJWK, signature: Signature, payload: bytes) -> bool:
    from jwt import PyJWTError
    from jwt.api_jws import PyJWS

    encoded = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    token = f"{signature.protected}.{encoded}.{signature.signature}"
    try:
        PyJWS().decode(token, key, algorithms=[key.algorithm_name])
    except (PyJWTError, ValueError):
        return False
    return True


def _without_empty(value: object) -> object:
    """Return the value without empty texts, lists and objects, as A2A signers omit them; None if nothing is left."""
    if isinstance(value, dict):
        kept = {name: part for name, item in value.items() if (part := _without_empty(item)) is not None}
        return kept or None
    if isinstance(value, list):
        return [part for item in value if (part := _without_empty(item)) is not None] or None
    return None if value == "" else value
