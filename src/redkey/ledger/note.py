"""Signed notes as C2SP writes them: a text, an empty line, and a line for each signature.

Parsing is strict and bounded, because notes may come from anyone: each value has one spelling, so that no bit of a note
can change unnoticed. A verifier key is text, `<name>+<key id>+<base64 of type and key>`; the key id distinguishes keys
and proves nothing. Keys that sign are `signer`; what the text of a checkpoint says is
`checkpoint`; signatures with a time are `cosignature`.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from hashlib import sha256

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from redkey.errors import KeyRefused, ProofRefused

# Signature types: a plain Ed25519 signature of the text, and an Ed25519 cosignature that carries its time.
ED25519 = 0x01
COSIGNATURE = 0x04
KEY_BYTES = 32
SIGNATURE_BYTES = 64
NOTE_LIMIT = 128 * 1024
SIGNATURES_LIMIT = 64
NAME_LIMIT = 255

_DASH = "— "
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_NAME = re.compile(r"[^\s+\x00-\x1f]+")


class VerifierKey(msgspec.Struct, frozen=True):
    """A public key under the name it signs by."""

    name: str
    algorithm: int
    public_key: bytes

    @property
    def key_id(self) -> bytes:
        """Return four bytes that distinguish this key from others; they prove nothing."""
        named = self.name.encode() + b"\n" + bytes((self.algorithm,)) + self.public_key
        return sha256(named).digest()[:4]

    def named(self, name: str) -> VerifierKey:
        """Return the same key under another name."""
        return VerifierKey(name, self.algorithm, self.public_key)

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{encode_base64(bytes((self.algorithm,)) + self.public_key)}"


class Signature(msgspec.Struct, frozen=True):
    """One signature line: the claimed signer, and the bytes that should prove it."""

    name: str
    key_id: bytes
    data: bytes

    @property
    def signer(self) -> str:
        """Return the signer for messages: key name and key id."""
        return f"{self.name}+{self.key_id.hex()}"

    def line(self) -> str:
        return f"{_DASH}{self.name} {encode_base64(self.key_id + self.data)}\n"


class Note(msgspec.Struct, frozen=True):
    """A text (it ends with a newline) and its signatures, which are not verified yet."""

    text: bytes
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        return self.text + b"\n" + "".join(one.line() for one in self.signatures).encode()

    def by(self, key: VerifierKey) -> list[Signature]:
        """Return the signatures that claim to be by this key."""
        return [one for one in self.signatures if one.key_id == key.key_id and one.name == key.name]


def parse_note(data: bytes) -> Note:
    """Parse a note; raise ProofRefused if it is not exactly one."""
    if len(data) > NOTE_LIMIT:
        raise ProofRefused(f"a note of {len(data):,} bytes; the limit is {NOTE_LIMIT:,}", code="note_too_large")
    try:
        whole = data.decode()
    except UnicodeDecodeError as cause:
        raise ProofRefused("the note is not UTF-8", code="note_malformed") from cause
    if _CONTROL.search(whole):
        raise ProofRefused("the note contains a control character", code="note_malformed")
    # The text may contain empty lines: the last one separates it from the signatures.
    text, parted, lines = whole.rpartition("\n\n")
    if not parted or not lines.endswith("\n"):
        raise ProofRefused("the note has no signature lines after an empty line", code="note_malformed")
    signatures = lines[:-1].split("\n")
    if len(signatures) > SIGNATURES_LIMIT:
        raise ProofRefused(f"the note has more than {SIGNATURES_LIMIT} signatures", code="note_too_large")
    return Note((text + "\n").encode(), tuple(parse_signature(line) for line in signatures))


def parse_signature(line: str) -> Signature:
    """Parse one signature line, without its newline."""
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space or not is_key_name(name):
        raise ProofRefused("a signature line is not `— name base64`", code="note_malformed")
    data = decode_base64(encoded)
    if len(data) <= 4:
        raise ProofRefused("a signature line is too short to hold a key id and a signature", code="note_malformed")
    return Signature(name, data[:4], data[4:])


def parse_key(text: str) -> VerifierKey:
    """Parse a verifier key; raise KeyRefused if it is not one of the two kinds used here."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        data = decode_base64(encoded)
    except ProofRefused as cause:
        raise KeyRefused("a verifier key is `name+key id+base64`", code="key_malformed") from cause
    if not is_key_name(name) or not data:
        raise KeyRefused("a verifier key is `name+key id+base64`", code="key_malformed")
    if data[0] not in (ED25519, COSIGNATURE) or len(data) != 1 + KEY_BYTES:
        raise KeyRefused(
            f"the key of {name} is of type {data[0]:#04x}, {len(data) - 1} bytes; "
            "known are 0x01 (a log's Ed25519 key) and 0x04 (a witness's), of 32 bytes",
            code="key_type_unknown",
        )
    key = VerifierKey(name, data[0], data[1:])
    if key.key_id.hex() != key_id:
        raise KeyRefused(f"the key of {name} has the id {key.key_id.hex()}, not {key_id[:8]!r}", code="key_id_wrong")
    return key


def is_key_name(name: str) -> bool:
    """Return whether C2SP allows this name for a key: not empty, no space of any kind, no plus, printable."""
    return _NAME.fullmatch(name) is not None and len(name.encode(errors="replace")) <= NAME_LIMIT


def is_signed_by(key: VerifierKey, signature: bytes, message: bytes) -> bool:
    """Return whether these 64 bytes are the key's Ed25519 signature of the message."""
    if len(signature) != SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def verifies(key: VerifierKey, signature: Signature, text: bytes) -> bool:
    """Return whether the note has a valid plain signature of this key for this text."""
    return key.algorithm == ED25519 and is_signed_by(key, signature.data, text)


def encode_base64(data: bytes) -> str:
    """Encode bytes as standard base64."""
    return b64encode(data).decode()


def decode_base64(text: str) -> bytes:
    """Decode standard base64 in its canonical spelling; raise ProofRefused for any other."""
    try:
        data = b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as cause:
        raise ProofRefused("not base64", code="base64_malformed") from cause
    # Python ignores the unused bits of the last character, so a value would have several spellings.
    if encode_base64(data) != text:
        raise ProofRefused("not base64 as it is written canonically", code="base64_malformed")
    return data
