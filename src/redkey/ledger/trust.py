"""Check a checkpoint with the caller's keys: who signed it, and who witnessed it.

Keys in the receipt prove nothing: only the caller's keys count. Retired signers in a receipt or a key file are a reason
to refuse, never to accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from redkey.errors import Finding, KeyRefused
from redkey.ledger.checkpoint import Checkpoint, key_for, parse_size, split_epoch
from redkey.ledger.cosignature import cosigned_at, is_cosignature
from redkey.ledger.note import COSIGNATURE, ED25519, Note, Signature, VerifierKey, parse_key, verifies
from redkey.ledger.record import iso_time
from redkey.wire.times import NANOSECONDS


class TrustedKey(msgspec.Struct, frozen=True):
    """A log's key of the caller, and the tree size at which it was retired (None: it is in use)."""

    key: VerifierKey
    retired: int | None = None


class Level(msgspec.Struct, frozen=True):
    """Whether a level of proof is reached, and why, in one sentence."""

    holds: bool
    why: str


class Opinion(msgspec.Struct, frozen=True):
    """A level, the findings, and the keys that prove it."""

    level: Level
    findings: tuple[Finding, ...] = ()
    keys: tuple[VerifierKey, ...] = ()


def parse_trusted_keys(text: str) -> list[TrustedKey]:
    """Parse the lines of a key file: `verifier-key`, or `verifier-key retired SIZE`; # begins a comment."""
    found: list[TrustedKey] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) not in (1, 3) or words[1:2] not in ([], ["retired"]):
            raise KeyRefused("a line of a key file is `verifier-key` or `verifier-key retired SIZE`")
        found.append(_trusted(parse_key(words[0]), words[2] if words[1:] else None))
    return found


def _trusted(key: VerifierKey, retired: str | None) -> TrustedKey:
    if retired is None:
        return TrustedKey(key)
    if key.name.startswith("redkey/") and not split_epoch(key.name)[1]:
        # Sizes are counted per origin, so one size cannot retire a key for all origins of a log.
        raise KeyRefused(f"a retirement is of one origin, such as {key.name}/<workspace>/e1, not of a whole log")
    return TrustedKey(key, parse_size(retired))


def log_keys(keys: Iterable[TrustedKey]) -> list[TrustedKey]:
    """Return the keys; raise KeyRefused if one is not a log's key."""
    kept = list(keys)
    for one in kept:
        if one.key.algorithm != ED25519:
            raise KeyRefused(f"{one.key.name} is a witness's key (type 0x04), not a log's", code="key_type_wrong")
    return kept


def witness_keys(keys: Iterable[TrustedKey]) -> list[VerifierKey]:
    """Return the keys; raise KeyRefused if one is not a witness's key, or two are the same."""
    kept: dict[bytes, VerifierKey] = {}
    for one in keys:
        if one.key.algorithm != COSIGNATURE:
            raise KeyRefused(f"{one.key.name} is a log's key (type 0x01), not a witness's", code="key_type_wrong")
        if one.key.public_key in kept:
            raise KeyRefused(f"{one.key.name} is the same key as another witness's", code="witness_repeated")
        kept[one.key.public_key] = one.key
    return list(kept.values())


def signed_level(
    checkpoint: Checkpoint, note: Note, keys: Sequence[TrustedKey], retired: Mapping[bytes, int] | None = None
) -> Opinion:
    """Check that one of the caller's keys signed the checkpoint; `retired` are the retirements in the receipt."""
    lines = ", ".join(one.signer for one in note.signatures if not is_cosignature(one)) or "nobody"
    if not keys:
        return Opinion(Level(False, f"no key was given to check with; {lines} signed, and nobody vouched for that key"))
    fitting = [(one, key) for one in keys if (key := key_for(one.key, checkpoint.origin))]
    if not fitting:
        given = ", ".join(one.key.name for one in keys)
        return _not_signed("key_other_log", f"the key is for {given}, the checkpoint is of {checkpoint.origin}")
    good: list[VerifierKey] = []
    findings: list[Finding] = []
    for trusted, key in fitting:
        signatures = note.by(key)
        if not signatures:
            continue
        if not all(verifies(key, one, note.text) for one in signatures):
            return _not_signed("signature_invalid", f"the signature of {signatures[0].signer} is wrong")
        ends = [size for size in (trusted.retired, (retired or {}).get(key.public_key)) if size is not None]
        if ends and checkpoint.size >= min(ends):
            text = f"{signatures[0].signer} was retired at size {min(ends)}, and signed size {checkpoint.size}"
            findings.append(Finding("signer_retired", "", text))
            continue
        good.append(key)
    if good:
        # A retired key does not invalidate a signature of another key.
        return Opinion(Level(True, f"signed by {_names(good)}"), keys=tuple(good))
    if findings:
        return Opinion(Level(False, findings[0].message), tuple(findings))
    return _not_signed("key_did_not_sign", f"signed by {lines}, not by a key that was given")


def witnessed_level(
    note: Note, witnesses: Sequence[VerifierKey], quorum: int | None, log_keys: Iterable[bytes] = ()
) -> Opinion:
    """Check that enough of the caller's witnesses cosigned: all of them, or `quorum`; the log itself does not count."""
    if not witnesses:
        lines = ", ".join(dict.fromkeys(one.signer for one in note.signatures if is_cosignature(one)))
        told = f"{lines} cosigned, and nobody vouched for them" if lines else "nobody cosigned"
        return Opinion(Level(False, f"no witness key was given to check with; {told}"))
    needed = len(witnesses) if quorum is None else quorum
    own = frozenset(log_keys)
    seen: list[str] = []
    findings: list[Finding] = []
    good: list[VerifierKey] = []
    for witness in witnesses:
        if witness.public_key in own:
            findings.append(
                Finding("witness_is_signer", "", f"{witness.name} has the log's own key: it witnesses nothing")
            )
            continue
        signatures = note.by(witness)
        if not signatures:
            findings.append(Finding("witness_missing", "", f"{witness.name} did not cosign this checkpoint"))
            continue
        times = [cosigned_at(witness, one, note.text) for one in signatures]
        if None in times:
            findings.append(Finding("cosignature_invalid", "", f"the cosignature of {witness.name} is wrong"))
            continue
        good.append(witness)
        # A witness that is listed twice counts once.
        seen.append(f"{witness.name} at {_time(max(time or 0 for time in times))}")
    if len(good) >= needed and not any(one.code == "cosignature_invalid" for one in findings):
        return Opinion(Level(True, f"cosigned by {', '.join(seen)}"), keys=tuple(good))
    text = f"{len(good)} of {len(witnesses)} witnesses cosigned, {needed} are needed"
    return Opinion(Level(False, text), (*findings, Finding("witness_quorum", "", text)))


def attests(keys: Iterable[VerifierKey], signatures: Sequence[Signature], text: bytes) -> bool | None:
    """Return whether one of the keys signed this text: None if there is no such signature, False if it is wrong."""
    tried = [(key, one) for key in keys for one in Note(text, tuple(signatures)).by(key)]
    if not tried:
        return None
    return all(verifies(key, one, text) for key, one in tried)


def _not_signed(code: str, text: str) -> Opinion:
    return Opinion(Level(False, text), (Finding(code, "", text),))


def _time(seconds: int) -> str:
    return f"{iso_time(seconds * NANOSECONDS)[:19]}Z" if seconds < 10**11 else f"second {seconds}"


def _names(keys: Iterable[VerifierKey]) -> str:
    return ", ".join(f"{key.name}+{key.key_id.hex()}" for key in keys)
