"""The files of signing keys: created at the first start, readable by their owner only, replaced by rotation.

`signer-0001.key` contains the secret, `signer-0001.pub` the verifier key to publish. Rotation adds `signer-0002`, and
both sign. When the ledger records that the old key is retired, its secret is deleted and its public part is kept as
`signer-0001.retired`. A lost secret is never replaced silently, because readers pin keys.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from redkey.errors import KeyRefused
from redkey.ledger.note import ED25519, VerifierKey, parse_key
from redkey.ledger.signer import Signer
from redkey.stores.durable import create_file, locked, remove_file, replace_file

_KEY_FILE = re.compile(r"signer-([0-9]{4})\.(key|pub|retired)")
_SIZE_LIMIT = 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


# The name of the issuing secret in every secret store; the name of a signing key is FOLDER/NUMBER.
ISSUING = "issuing"


class Secret(msgspec.Struct, frozen=True):
    """A secret to copy between stores; a retired key has only its public part."""

    name: str
    public: str
    secret: bytes | None

    def refuse_other(self, found: bytes | None) -> None:
        """Raise KeyRefused if the target has `found`, another secret, under this name."""
        if found != self.secret:
            raise KeyRefused(f"the target has another secret {self.name}; name an empty target", code="key_exists")


class SignerKeys:
    """The signing keys of one log, in one directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def signers(self, *, create: bool = True) -> list[Signer]:
        """Return the active keys, oldest first; with `create`, create the first one if there never was a key."""
        with self._locked():
            self._finish_retirements()
            if not self._numbers():
                if not create:
                    text = f"{self._directory} has no keys, but this log has signed; restore the keys from a backup"
                    raise KeyRefused(text, code="key_lost")
                return [self._create(1)]
            lost = [number for number in self._numbers("pub") if not self._path(number, "key").exists()]
            if lost:
                text = f"{self._path(lost[0], 'key')} is missing; restore it, or add a key and retire this one"
                raise KeyRefused(text, code="key_lost")
            return [self._read(number) for number in self._numbers("key")]

    def add(self) -> Signer:
        """Begin a rotation: create a key, which signs from now on in addition to the others."""
        with self._locked():
            return self._create(max(self._numbers(), default=0) + 1)

    def retire(self, key: VerifierKey) -> None:
        """End a rotation: delete the secret of this key, which no longer signs. The last key cannot be retired."""
        with self._locked():
            numbers = self._numbers("pub")
            matching = [number for number in numbers if self._public(number).public_key == key.public_key]
            if not matching:
                raise KeyRefused(f"no signing key has the id {key.key_id.hex()}", code="key_unknown")
            if numbers == matching:
                raise KeyRefused("the last signing key cannot be retired; add another one first", code="key_last")
            # This file marks the key as retired. After a crash, the next start deletes the other files.
            create_file(self._path(matching[0], "retired"), f"{self._public(matching[0])}\n".encode(), 0o644)
            self._finish_retirements()

    def retired(self) -> list[VerifierKey]:
        """Return the retired keys, oldest first."""
        return [parse_key(self._path(number, "retired").read_text()) for number in self._numbers("retired")]

    def _create(self, number: int) -> Signer:
        signer = Signer.generate(self._name)
        write_key(self._path(number, "key"), signer)
        replace_file(self._path(number, "pub"), f"{signer.verifier}\n".encode(), 0o644)
        return signer

    def _read(self, number: int) -> Signer:
        path = self._path(number, "key")
        signer = read_key(path, ED25519)
        if signer.verifier.name != self._name:
            raise KeyRefused(f"{path} is the key of {signer.verifier.name}, not of {self._name}", code="key_other_log")
        public = self._path(number, "pub")
        if not public.exists():
            # The process died after it wrote the secret of a new key, and before it wrote the public part.
            replace_file(public, f"{signer.verifier}\n".encode(), 0o644)
        return signer

    def _public(self, number: int) -> VerifierKey:
        return parse_key(self._path(number, "pub").read_text())

    def _finish_retirements(self) -> None:
        for number in self._numbers("retired"):
            for kind in ("key", "pub"):
                if self._path(number, kind).exists():
                    remove_file(self._path(number, kind))

    def _numbers(self, kind: str = "") -> list[int]:
        matches = (_KEY_FILE.fullmatch(path.name) for path in self._directory.iterdir())
        return sorted({int(match[1]) for match in matches if match and kind in ("", match[2])})

    def _path(self, number: int, kind: str) -> Path:
        return self._directory / f"signer-{number:04d}.{kind}"

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._directory / "lock")


class FileSecrets:
    """The secrets of a log as files in one folder of this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def signers(self, name: str, folder: str = "signer") -> SignerKeys:
        """Return the signing keys of a log; keys for another purpose have their own folder."""
        return SignerKeys(self._directory if folder == "signer" else self._directory / folder, name)

    def issuing_secret(self) -> bytes:
        """Return the secret from which API keys are derived; create it at first use."""
        path = self._directory / "issuer.key"
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(path, secrets.token_hex(32).encode() + b"\n", 0o600)
        return bytes.fromhex(path.read_text().strip())

    def export(self) -> list[Secret]:
        """Return all secrets, to copy them to another store."""
        exported = []
        if (self._directory / "issuer.key").exists():
            exported.append(Secret(ISSUING, "", self.issuing_secret()))
        for path in sorted(self._directory.rglob("signer-*")):
            match = _KEY_FILE.fullmatch(path.name)
            if match is None or (match[2] == "pub") or not path.is_file():
                continue
            name = f"{'signer' if path.parent == self._directory else path.parent.name}/{match[1]}"
            if match[2] == "retired":
                exported.append(Secret(name, path.read_text().strip(), None))
            elif not path.with_suffix(".retired").exists():
                signer = read_key(path, ED25519)
                exported.append(Secret(name, str(signer.verifier), signer.private_text().encode()))
        return exported

    def restore(self, found: Iterable[Secret]) -> None:
        """Store the secrets of another store; raise KeyRefused if a different secret has one of their names."""
        for secret in found:
            if secret.name == ISSUING:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                create_file(self._directory / "issuer.key", f"{(secret.secret or b'').hex()}\n".encode(), 0o600)
                secret.refuse_other(self.issuing_secret())
                continue
            folder, _, number = secret.name.rpartition("/")
            directory = self._directory if folder == "signer" else self._directory / folder
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = directory / f"signer-{number}"
            if secret.secret is None:
                create_file(path.with_suffix(".retired"), f"{secret.public}\n".encode(), 0o644)
                continue
            create_file(path.with_suffix(".key"), secret.secret + b"\n", 0o600)
            secret.refuse_other(read_key(path.with_suffix(".key"), ED25519).private_text().encode())
            create_file(path.with_suffix(".pub"), f"{secret.public}\n".encode(), 0o644)


def server_id(data: Path) -> str:
    """Return the random id of a server's data directory; create it at first use."""
    file = data / "server.id"
    create_file(file, secrets.token_hex(8).encode(), 0o600)
    return file.read_text().strip()


def write_key(path: Path, signer: Signer) -> None:
    """Write a new secret; raise KeyRefused if the file exists."""
    if not create_file(path, f"{signer.private_text()}\n".encode(), 0o600):
        raise KeyRefused(f"{path} exists already", code="key_exists")


def read_key(path: Path, algorithm: int) -> Signer:
    """Read a secret; raise KeyRefused if other users may read the file, or it is not a key of this kind."""
    signer = Signer.parse(read_private_file(path).decode(errors="replace"))
    if signer.verifier.algorithm != algorithm:
        raise KeyRefused(
            f"{path} contains a key of the wrong kind: logs and witnesses use different kinds", code="key_type_wrong"
        )
    return signer


def read_private_file(path: Path) -> bytes:
    """Read a small file; raise KeyRefused if other users may read it, or it is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as cause:
        raise KeyRefused(f"{path} cannot be read: {cause.strerror}", code="key_unreadable") from cause
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyRefused(f"{path} is not a regular file", code="key_unreadable")
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            text = f"{path} has mode {mode:04o}: other users may read or change it; set it to 0600, and rotate the key"
            raise KeyRefused(text, code="key_exposed")
        return file.read(_SIZE_LIMIT)
