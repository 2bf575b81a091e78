"""Checkpoints, cosignatures and proof files have the bytes that the C2SP documents give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import KeyRefused, ProofRefused
from redkey.ledger.checkpoint import (
    Checkpoint,
    key_for,
    open_checkpoint,
    origin_of,
    parse_checkpoint,
    parse_size,
    sign_checkpoint,
    split_epoch,
)
from redkey.ledger.cosignature import cosign, cosigned_at, is_cosignature, with_cosignatures
from redkey.ledger.merkle import leaf_hash
from redkey.ledger.note import Note, Signature, decode_base64, is_signed_by, parse_note, verifies
from redkey.ledger.proof import parse_proof
from redkey.ledger.running_hash import record_preimage
from tests.harness.small_log import LOG_ID, ORIGIN, OTHER_LOG, SIGNER, WITNESSES, WORKSPACE, SmallLog, seeded

# The example of c2sp.org/tlog-checkpoint and tlog-cosignature; the keys of its signatures are not given there.
SPEC_TEXT = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
SPEC_NOTE = (
    f"{SPEC_TEXT}\n— example.com/behind-the-sofa "
    "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 "
    "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
)
# A cosignature of the wild, with the time that its implementation reads from it.
WILD_COSIGNATURE = (
    "ZGhGuQAAAABm/qTPeyKXD+R2rzyQsxPiP8mXum7qq/iF0u4vanlqJyocWODBt97w9uL+8qT7S5gxEHWWOworDcFiEBYJXORmnFBOBA=="
)


def test_the_example_of_the_specification_reads_back() -> None:
    checkpoint, note = open_checkpoint(SPEC_NOTE.encode())
    assert checkpoint.origin == "example.com/behind-the-sofa"
    assert checkpoint.size == 20_852_163
    assert checkpoint.text() == SPEC_TEXT.encode()
    assert note.encode() == SPEC_NOTE.encode()
    assert [is_cosignature(line) for line in note.signatures] == [False, True]
    assert int.from_bytes(note.signatures[1].data[:8]) == 1_679_315_147


def test_the_time_of_a_cosignature_of_the_wild_is_read() -> None:
    data = decode_base64(WILD_COSIGNATURE)
    assert is_cosignature(Signature("w", data[:4], data[4:]))
    assert int.from_bytes(data[4:12]) == 1_727_964_367


def test_extensions_are_kept() -> None:
    checkpoint = Checkpoint("example.com/log", 0, bytes(32), ("one more line", "and another"))
    assert parse_checkpoint(checkpoint.text()) == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o\n7\n",
        "o\n7\nAAAA\n",
        f"o\n07\n{'A' * 43}=\n",
        f"o\n-7\n{'A' * 43}=\n",
        f"o\n+7\n{'A' * 43}=\n",
        f"o\n7 \n{'A' * 43}=\n",
        f"o\n٧\n{'A' * 43}=\n",
        f"o\n9223372036854775808\n{'A' * 43}=\n",
        f"o\n{'9' * 5000}\n{'A' * 43}=\n",
        f"\n7\n{'A' * 43}=\n",
        f"o\n7\n{'A' * 43}=",
        f"o\n7\n{'A' * 43}=\n\nmore\n",
        f"o\n7\n{'A' * 42}B=\n",
        f"o\n7\n{'A' * 43}=\n" + "x\n" * 17,
    ],
)
def test_what_is_not_exactly_a_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(ProofRefused):
        parse_checkpoint(text.encode())


def test_origins_carry_log_workspace_and_epoch() -> None:
    assert origin_of(LOG_ID, WORKSPACE, 1) == f"redkey/{LOG_ID}/{WORKSPACE}/e1"
    assert split_epoch(ORIGIN) == (f"redkey/{LOG_ID}/{WORKSPACE}", 1)
    assert split_epoch("example.com/log/e7") == ("example.com/log/e7", 0)
    assert split_epoch(f"redkey/{LOG_ID}/{WORKSPACE}/e0") == (f"redkey/{LOG_ID}/{WORKSPACE}/e0", 0)


def test_a_checkpoint_is_signed_under_its_origin_so_that_any_c2sp_tool_can_check_it() -> None:
    note = sign_checkpoint(Checkpoint(ORIGIN, 3, bytes(32)), [SIGNER])
    key = SIGNER.verifier.named(ORIGIN)
    assert [line.name for line in note.signatures] == [ORIGIN]
    assert verifies(key, note.by(key)[0], note.text)


def test_a_logs_key_speaks_for_its_origins_and_no_others() -> None:
    assert key_for(SIGNER.verifier, ORIGIN) == SIGNER.verifier.named(ORIGIN)
    assert key_for(SIGNER.verifier.named(ORIGIN), ORIGIN) is not None
    assert key_for(SIGNER.verifier.named(ORIGIN), origin_of(LOG_ID, WORKSPACE, 2)) is None
    assert key_for(SIGNER.verifier, f"redkey/{LOG_ID}x/{WORKSPACE}/e1") is None
    assert key_for(OTHER_LOG.verifier, ORIGIN) is None
    assert key_for(WITNESSES[0].verifier, ORIGIN) is None


def test_a_cosignature_signs_the_header_the_time_and_the_checkpoint() -> None:
    text = SPEC_TEXT.encode()
    line = cosign(WITNESSES[0], text, 1_679_315_147)
    message = b"cosignature/v1\ntime 1679315147\n" + text
    assert is_signed_by(WITNESSES[0].verifier, line.data[8:], message)
    assert cosigned_at(WITNESSES[0].verifier, line, text) == 1_679_315_147


def test_a_forged_cosignature_is_none() -> None:
    text = SPEC_TEXT.encode()
    key, line = WITNESSES[0].verifier, cosign(WITNESSES[0], text, 1_679_315_147)
    assert cosigned_at(WITNESSES[1].verifier, line, text) is None
    assert cosigned_at(key, line, text + b"extension\n") is None
    assert cosigned_at(seeded(key.name, 10).verifier, line, text) is None
    for bit in range(len(line.data) * 8):
        data = bytearray(line.data)
        data[bit // 8] ^= 1 << bit % 8
        assert cosigned_at(key, Signature(line.name, line.key_id, bytes(data)), text) is None
    for data in (line.data[:-1], line.data + b"\0", line.data[8:]):
        assert cosigned_at(key, Signature(line.name, line.key_id, data), text) is None


def test_a_logs_key_does_not_cosign() -> None:
    with pytest.raises(KeyRefused, match="does not cosign"):
        cosign(SIGNER, b"text\n", 1)


def test_only_good_lines_of_known_witnesses_are_taken_from_an_answer() -> None:
    note = SmallLog(3).note()
    good, unknown = cosign(WITNESSES[0], note.text, 5), cosign(WITNESSES[1], note.text, 5)
    wrong = cosign(WITNESSES[2], note.text + b"x", 5)
    answer = "".join(line.line() for line in (good, unknown, wrong)).encode()
    keys = [WITNESSES[0].verifier, WITNESSES[2].verifier]
    joined = with_cosignatures(note, answer, keys)
    assert joined.signatures == (*note.signatures, good)
    later = cosign(WITNESSES[0], note.text, 6)
    assert with_cosignatures(joined, later.line().encode(), keys).signatures == (*note.signatures, later)
    for answer in (b"\xff\n", b"hello\n"):
        with pytest.raises(ProofRefused):
            with_cosignatures(note, answer, keys)


def test_a_proof_file_has_the_lines_of_tlog_proof_and_reads_back() -> None:
    log = SmallLog(5)
    proof = log.proof(3)
    text = proof.encode().decode()
    head, _, rest = text.partition("\n\n")
    assert head.splitlines()[:2] == ["c2sp.org/tlog-proof@v1", "index 2"]
    assert len(head.splitlines()) == 2 + 3
    assert rest == log.note().encode().decode()
    assert parse_proof(text.encode()) == proof
    assert proof.proves(leaf_hash(record_preimage(log.previous(3), log.records[2])))
    assert not proof.proves(leaf_hash(record_preimage(log.previous(2), log.records[1])))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tlog-proof@v1", "tlog-proof@v2"),
        ("index 2", "index 02"),
        ("index 2", "index -2"),
        ("index 2\n", ""),
        ("index 2", "extra \nindex 2"),
        ("index 2", "extra A\nindex 2"),
        ("index 2", "index 2\nnot base64!"),
        ("index 2", "index 2\nAAAA"),
        ("index 2", "index 2\n" + "\n".join(["A" * 43 + "="] * 64)),
        (
            "\n\n",
            "\n",
        ),
        ("index 2", "índex 2"),
    ],
)
def test_what_is_not_exactly_a_proof_is_refused(old: str, new: str) -> None:
    text = SmallLog(5).proof(3).encode().decode()
    assert old in text
    with pytest.raises(ProofRefused):
        parse_proof(text.replace(old, new, 1).encode())


@given(st.binary(max_size=200))
def test_reading_strange_bytes_only_ever_refuses(data: bytes) -> None:
    for read in (parse_proof, open_checkpoint, parse_note):
        try:
            read(data)
        except ProofRefused:
            continue


@given(st.text(max_size=25))
def test_a_size_has_one_spelling(text: str) -> None:
    try:
        size = parse_size(text)
    except ProofRefused:
        return
    assert str(size) == text


def test_a_note_with_no_line_of_ours_is_by_nobody() -> None:
    assert Note(b"x\n", ()).by(SIGNER.verifier) == []
