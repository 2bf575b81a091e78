"""Verifier keys as command arguments: the text of a key, or a file with one per line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.note import VerifierKey
from redkey.ledger.trust import TrustedKey, log_keys, parse_trusted_keys, witness_keys


def log_key_option(given: Iterable[str]) -> list[TrustedKey]:
    """Parse keys of logs; a wrong one is a usage error."""
    try:
        return log_keys(_keys(given))
    except (KeyRefused, ProofRefused) as refused:
        raise click.UsageError(f"{refused.message} [{refused.code}]") from refused


def witness_key_option(given: Iterable[str]) -> list[VerifierKey]:
    """Parse keys of witnesses; a wrong or repeated one is a usage error."""
    try:
        return witness_keys(_keys(given))
    except (KeyRefused, ProofRefused) as refused:
        raise click.UsageError(f"{refused.message} [{refused.code}]") from refused


def _keys(given: Iterable[str]) -> list[TrustedKey]:
    found: list[TrustedKey] = []
    for one in given:
        # A key has two plus signs, which a file name may have too: an existing file takes precedence.
        text = one if one.count("+") >= 2 and not Path(one).exists() else _file(Path(one))
        keys = parse_trusted_keys(text)
        if not keys:
            raise KeyRefused(f"{one} holds no key", code="key_missing")
        found.extend(keys)
    return found


def _file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as cause:
        raise KeyRefused(f"{path} is neither a verifier key nor a file of them", code="key_unreadable") from cause
