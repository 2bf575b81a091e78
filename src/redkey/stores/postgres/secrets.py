"""The secrets of a log that several servers share: in the database, each sealed under a key that the database lacks.

The sealing key comes from the environment (`REDKEY_STORE_KEY`) or from a file. A secret is sealed with AES-256-GCM, and
its name is sealed with it, so that no secret can be put in the place of another. A key that signs no more keeps its
public part; its secret is deleted.
"""

from __future__ import annotations

import os
import secrets
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from redkey.errors import KeyRefused
from redkey.ledger.note import ED25519, VerifierKey, parse_key
from redkey.ledger.signer import Signer
from redkey.stores.keys import ISSUING, Secret, read_private_file
from redkey.stores.postgres.schema import SQL

VARIABLE = "REDKEY_STORE_KEY"
_KEY_BYTES, _NONCE_BYTES = 32, 12
_ADVICE = f"set {VARIABLE} or store_key_file to 32 random bytes in base64, such as those of: openssl rand -base64 32"

# Runs one statement by itself.
Run = Callable[[str, Any], list[Any]]


def sealing_key(environment: Mapping[str, str], file: Path | None) -> bytes:
    """The key that secrets are sealed under; KeyRefused if there is none or it has another length."""
    text = environment.get(VARIABLE, "")
    if not text and file is not None:
        text = read_private_file(file).decode(errors="replace")
    if not text.strip():
        raise KeyRefused(f"the secrets in the database need a key; {_ADVICE}", code="store_key_missing")
    try:
        key = b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise KeyRefused(f"the key of the store's secrets is not 32 bytes in base64; {_ADVICE}", code="store_key_wrong")
    return key


class DatabaseSecrets:
    """All secrets of one log."""

    def __init__(self, run: Run, file: Path | None = None) -> None:
        """`file` holds the sealing key, if the environment does not."""
        self._run, self._file = run, file
        self._cipher: AESGCM | None = None

    def signers(self, name: str, folder: str = "signer") -> DatabaseSigners:
        """The signing keys of a log by its name."""
        return DatabaseSigners(self, name, folder)

    def issuing_secret(self) -> bytes:
        """The secret that API keys are derived from, created at first use."""
        found = self.read(ISSUING)
        if found is None:
            self.add(ISSUING, "", secrets.token_bytes(32))
            # Another server may have been first.
            found = self.read(ISSUING)
        if found is None:
            raise KeyRefused("the database did not keep the issuing secret", code="key_lost")
        return found

    def read(self, name: str) -> bytes | None:
        """A secret by its name; KeyRefused if it was sealed under another key."""
        found = self._run(SQL["secret"], (name,))
        if not found or found[0][0] is None:
            return None
        sealed = found[0][0]
        try:
            return self._sealing().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
        except InvalidTag:
            text = f"the secret {name} was sealed under another key; use the {VARIABLE} of the other servers"
            raise KeyRefused(text, code="store_key_wrong") from None

    def add(self, name: str, public: str, secret: bytes) -> bool:
        """Seal a new secret; False if there is one of this name already."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._sealing().encrypt(nonce, secret, name.encode())
        return bool(self._run(SQL["insert_secret"], (name, public, sealed)))

    def delete(self, name: str) -> None:
        """Delete a secret; its public part stays."""
        self._run(SQL["delete_secret"], (name,))

    def names(self, folder: str) -> list[tuple[str, str, bool]]:
        """(name, public part, whether the secret is there) of a folder, oldest first."""
        return self._run(SQL["secrets"], (f"{folder}/", f"{folder}/\U0010ffff"))

    def export(self) -> list[Secret]:
        """All secrets, to be stored elsewhere."""
        known = self._run(SQL["secrets"], ("", "\U0010ffff"))
        return [Secret(name, public, self.read(name) if live else None) for name, public, live in known]

    def restore(self, found: Iterable[Secret]) -> None:
        """Store the secrets of another store; KeyRefused if there are others of the same names."""
        for one in found:
            if one.secret is None:
                self._run(SQL["insert_secret"], (one.name, one.public, None))
            else:
                self.add(one.name, one.public, one.secret)
            one.refuse_other(self.read(one.name))

    def _sealing(self) -> AESGCM:
        if self._cipher is None:
            self._cipher = AESGCM(sealing_key(os.environ, self._file))
        return self._cipher


class DatabaseSigners:
    """The signing keys of one log: `SigningKeys` in the database."""

    def __init__(self, secrets: DatabaseSecrets, name: str, folder: str) -> None:
        self._secrets, self._name, self._folder = secrets, name, folder

    def signers(self, *, create: bool = True) -> list[Signer]:
        """The keys that sign now, oldest first; the first one is created when there never was one."""
        known = self._secrets.names(self._folder)
        if not known:
            if not create:
                raise KeyRefused("the database has no keys, and this log has signed; restore them", code="key_lost")
            self._add(1)
            known = self._secrets.names(self._folder)
        return [self._read(name) for name, _, live in known if live]

    def add(self) -> Signer:
        """Begin a rotation: a new key, which signs beside the others from now on."""
        while True:
            signer = self._add(len(self._secrets.names(self._folder)) + 1)
            if signer is not None:
                return signer

    def retire(self, key: VerifierKey) -> None:
        """End a rotation: this key signs no more and its secret is deleted. The last key cannot be retired."""
        live = [(name, parse_key(public)) for name, public, alive in self._secrets.names(self._folder) if alive]
        found = [name for name, public in live if public.public_key == key.public_key]
        if not found:
            raise KeyRefused(f"no signing key has the id {key.key_id.hex()}", code="key_unknown")
        if len(live) == 1:
            raise KeyRefused("the last signing key cannot be retired; add another one first", code="key_last")
        self._secrets.delete(found[0])

    def _add(self, number: int) -> Signer | None:
        signer = Signer.generate(self._name)
        name = f"{self._folder}/{number:04d}"
        return signer if self._secrets.add(name, str(signer.verifier), signer.private_text().encode()) else None

    def _read(self, name: str) -> Signer:
        secret = self._secrets.read(name)
        if secret is None:
            raise KeyRefused(
                f"the secret {name} is gone; restore it, or add a key and retire this one", code="key_lost"
            )
        signer = Signer.parse(secret.decode())
        if signer.verifier.name != self._name or signer.verifier.algorithm != ED25519:
            raise KeyRefused(f"the secret {name} is the key of another log", code="key_other_log")
        return signer
