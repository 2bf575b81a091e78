"""The files of signing keys: made at first start, readable by their owner alone, changed by rotation.

`signer-0001.key` holds the secret, `signer-0001.pub` the verifier key to publish. Rotation adds
`signer-0002`, and both sign; when the ledger says that the old one is retired, its secret is deleted and its
public part is kept as `signer-0001.retired`. A secret that is lost is never replaced silently: readers pin keys.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import AbstractContextManager
from pathlib import Path

from redkey.errors import KeyRefused
from redkey.ledger.note import ED25519, VerifierKey, parse_key
from redkey.ledger.signer import Signer
from redkey.stores.durable import create_file, locked, remove_file, replace_file

_KEY_FILE = re.compile(r"signer-([0-9]{4})\.(key|pub|retired)")
_SIZE_LIMIT = 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SignerKeys:
    """The signing keys of one log, by the log's name, in a directory of their own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def signers(self, *, create: bool = True) -> list[Signer]:
        """The keys that sign now, oldest first; the first one is made when there never was one and it may be."""
        with self._locked():
            self._finish_retirements()
            if not self._numbers():
                if not create:
                    text = f"{self._directory} has no keys, and this log has signed; bring them back from a backup"
                    raise KeyRefused(text, code="key_lost")
                return [self._make(1)]
            lost = [number for number in self._numbers("pub") if not self._path(number, "key").exists()]
            if lost:
                text = f"{self._path(lost[0], 'key')} is gone; bring it back, or add a key and retire this one"
                raise KeyRefused(text, code="key_lost")
            return [self._read(number) for number in self._numbers("key")]

    def add(self) -> Signer:
        """Begin a rotation: a new key, which signs beside the others from now on."""
        with self._locked():
            return self._make(max(self._numbers(), default=0) + 1)

    def retire(self, key: VerifierKey) -> None:
        """End a rotation: this key signs no more and its secret is deleted. The last key cannot be retired."""
        with self._locked():
            numbers = self._numbers("pub")
            found = [number for number in numbers if self._public(number).public_key == key.public_key]
            if not found:
                raise KeyRefused(f"no signing key has the id {key.key_id.hex()}", code="key_unknown")
            if numbers == found:
                raise KeyRefused("the last signing key cannot be retired; add another one first", code="key_last")
            # From here on the key counts as retired: the rest is finished at the next start if it is cut off.
            create_file(self._path(found[0], "retired"), f"{self._public(found[0])}\n".encode(), 0o644)
            self._finish_retirements()

    def retired(self) -> list[VerifierKey]:
        """The keys that signed once, oldest first."""
        return [parse_key(self._path(number, "retired").read_text()) for number in self._numbers("retired")]

    def _make(self, number: int) -> Signer:
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
            # The process died between the two files of a new key: only this one was ever seen.
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
        names = (_KEY_FILE.fullmatch(path.name) for path in self._directory.iterdir())
        return sorted({int(found[1]) for found in names if found and kind in ("", found[2])})

    def _path(self, number: int, kind: str) -> Path:
        return self._directory / f"signer-{number:04d}.{kind}"

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._directory / "lock")


def issuing_secret(directory: Path) -> bytes:
    """The secret that API keys are derived from, made at first use."""
    path = directory / "issuer.key"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_file(path, secrets.token_hex(32).encode() + b"\n", 0o600)
    return bytes.fromhex(path.read_text().strip())


def write_key(path: Path, signer: Signer) -> None:
    """Keep a new secret where none is yet; KeyRefused when there is one."""
    if not create_file(path, f"{signer.private_text()}\n".encode(), 0o600):
        raise KeyRefused(f"{path} is there already", code="key_exists")


def read_key(path: Path, algorithm: int) -> Signer:
    """A secret from its file; KeyRefused when others may read it, or when it is no key of this kind."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as cause:
        raise KeyRefused(f"{path} cannot be read: {cause.strerror}", code="key_unreadable") from cause
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyRefused(f"{path} is not a plain file", code="key_unreadable")
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            text = f"{path} has mode {mode:04o}: others may read or change it; make it 0600, and rotate the key"
            raise KeyRefused(text, code="key_exposed")
        data = file.read(_SIZE_LIMIT)
    signer = Signer.parse(data.decode(errors="replace"))
    if signer.verifier.algorithm != algorithm:
        raise KeyRefused(
            f"{path} holds a key of the other kind: logs and witnesses have their own", code="key_type_wrong"
        )
    return signer
