"""Key files: which keys are taken, and which are refused before they can mislead."""

from __future__ import annotations

import pytest

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.note import COSIGNATURE
from redkey.ledger.trust import TrustedKey, log_keys, parse_trusted_keys, witness_keys
from tests.harness.small_log import ORIGIN, SIGNER, WITNESSES, seeded

LOG = SIGNER.verifier
EXACT = LOG.named(ORIGIN)
WITNESS = WITNESSES[0].verifier


def test_a_key_file_has_keys_comments_and_retirements() -> None:
    text = f"# the log of example\n{LOG}\n\n{EXACT} retired 5120  # rotated\n   {WITNESS}\n"
    assert parse_trusted_keys(text) == [TrustedKey(LOG), TrustedKey(EXACT, 5120), TrustedKey(WITNESS)]
    assert parse_trusted_keys("\n# nothing\n") == []


@pytest.mark.parametrize("line", [f"{LOG} until 5", f"{LOG} retired", f"{EXACT} retired 5 6", f"{LOG} {LOG}", "hello"])
def test_a_line_that_is_not_a_key_is_refused(line: str) -> None:
    with pytest.raises(KeyRefused):
        parse_trusted_keys(line)


@pytest.mark.parametrize("size", ["-1", "05", "x", "1e3"])
def test_a_retirement_is_at_a_size(size: str) -> None:
    with pytest.raises(ProofRefused):
        parse_trusted_keys(f"{EXACT} retired {size}")


def test_a_whole_log_is_not_retired_at_one_size_because_each_workspace_has_its_own() -> None:
    with pytest.raises(KeyRefused, match="of one origin"):
        parse_trusted_keys(f"{LOG} retired 7")
    foreign = seeded("example.com/log", 4).verifier
    assert parse_trusted_keys(f"{foreign} retired 7") == [TrustedKey(foreign, 7)]


def test_kinds_are_not_mixed_up() -> None:
    with pytest.raises(KeyRefused, match="a witness's key"):
        log_keys([TrustedKey(LOG), TrustedKey(WITNESS)])
    with pytest.raises(KeyRefused, match="a log's key"):
        witness_keys([TrustedKey(WITNESS), TrustedKey(LOG)])


def test_one_witness_under_two_names_is_refused() -> None:
    again = seeded("another.example/name", 10, COSIGNATURE).verifier
    assert again.public_key == WITNESS.public_key
    for twice in ([WITNESS, again], [WITNESS, WITNESS]):
        with pytest.raises(KeyRefused) as refused:
            witness_keys([TrustedKey(key) for key in twice])
        assert refused.value.code == "witness_repeated"
