"""Signing keys: generate them, write them as text, and sign. `redkey.stores.keys` stores the text.

A log has one name, `redkey/<log id>`, and signs each of its workspaces' checkpoints under that workspace's
origin, which begins with the name: so every C2SP tool that knows an origin's key can verify it, and a
client that pins the log's one key has the keys of all its origins.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.note import (
    COSIGNATURE,
    ED25519,
    KEY_BYTES,
    Note,
    Signature,
    VerifierKey,
    decode_base64,
    encode_base64,
    is_key_name,
)

_PRIVATE = "PRIVATE+KEY+"


class Signer:
    """A private key, with the name that it signs with."""

    __slots__ = ("_private", "verifier")

    def __init__(self, name: str, private: Ed25519PrivateKey, algorithm: int = ED25519) -> None:
        if not is_key_name(name):
            raise KeyRefused(f"{name!r} cannot name a key: no spaces, no plus, 1 to 255 bytes", code="key_name_refused")
        self._private: Final = private
        self.verifier: Final = VerifierKey(name, algorithm, private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str, algorithm: int = ED25519) -> Signer:
        """Generate a key from the operating system's randomness."""
        return cls(name, Ed25519PrivateKey.generate(), algorithm)

    @classmethod
    def parse(cls, text: str) -> Signer:
        """Parse a key from `PRIVATE+KEY+name+key id+base64`. Its errors never show any of the text."""
        name, _, rest = text.strip().removeprefix(_PRIVATE).partition("+")
        key_id, _, encoded = rest.partition("+")
        try:
            data = decode_base64(encoded)
        except ProofRefused:
            data = b""
        if not text.startswith(_PRIVATE) or len(data) != 1 + KEY_BYTES or data[0] not in (ED25519, COSIGNATURE):
            raise KeyRefused("this is not the text of a signing key", code="key_malformed") from None
        signer = cls(name, Ed25519PrivateKey.from_private_bytes(data[1:]), data[0])
        if signer.verifier.key_id.hex() != key_id:
            raise KeyRefused("the signing key and its key id do not agree", code="key_id_wrong")
        return signer

    def private_text(self) -> str:
        """Return the secret as the text that `parse` reads; store it only in a file of mode 0600."""
        data = bytes((self.verifier.algorithm,)) + self._private.private_bytes_raw()
        return f"{_PRIVATE}{self.verifier.name}+{self.verifier.key_id.hex()}+{encode_base64(data)}"

    def named(self, name: str) -> Signer:
        """Return the same key, to sign with another name."""
        return Signer(name, self._private, self.verifier.algorithm)

    def sign_bytes(self, message: bytes) -> bytes:
        return self._private.sign(message)

    @property
    def private_key(self) -> Ed25519PrivateKey:
        """Return the secret for other signature formats."""
        return self._private

    def sign(self, text: bytes) -> Signature:
        """Return a plain signature line for the text of a note."""
        if self.verifier.algorithm != ED25519:
            raise KeyRefused(f"the key of {self.verifier.name} is a witness's: it only cosigns", code="key_type_wrong")
        return Signature(self.verifier.name, self.verifier.key_id, self._private.sign(text))

    def __repr__(self) -> str:
        return f"Signer({self.verifier})"


def sign_note(text: bytes, *signers: Signer) -> Note:
    """Sign the text with each signer."""
    return Note(text, tuple(signer.sign(text) for signer in signers))
