"""What a witness lets pass and what it refuses, with the statuses of C2SP tlog-witness."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import ProofRefused, WitnessRefused
from redkey.ledger.checkpoint import Checkpoint, origin_of
from redkey.ledger.note import Note
from redkey.ledger.trust import TrustedKey
from redkey.ledger.witness import REQUEST_LIMIT, Request, judge, parse_request, recognise
from tests.harness.small_log import LOG_ID, NEXT_SIGNER, ORIGIN, OTHER_LOG, SIGNER, WORKSPACE, SmallLog, seeded

LOG = SmallLog(50)
FORK = SmallLog(50, seed="fork")
KNOWN = [TrustedKey(SIGNER.verifier)]


def request(old: int, size: int, log: SmallLog = LOG, **options: Any) -> Request:
    note = log.note(size=size, **options)
    return Request(old, tuple(log.tree.consistency_proof(old, size)), log.checkpoint(size, **options), note)


def refused(given: Request, last: Checkpoint | None, newest: int = 1) -> WitnessRefused:
    with pytest.raises(WitnessRefused) as caught:
        judge(given, last, newest)
    return caught.value


def test_a_request_has_the_lines_of_the_protocol_and_reads_back() -> None:
    given = request(20, 50)
    lines = given.encode().decode().split("\n")
    assert lines[0] == "old 20"
    assert lines.index("") == 1 + len(given.hashes)
    assert lines[lines.index("") + 1] == ORIGIN
    assert parse_request(given.encode()) == given


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("old 20", "old 020"),
        ("old 20", "new 20"),
        ("old 20", "old 20 "),
        ("old 20\n", "old 20\nAAAA\n"),
        ("old 20\n", "old 20\n" + ("A" * 43 + "=\n") * 64),
        ("old 20", "öld 20"),
        ("\n\n", "\n"),
    ],
)
def test_what_is_not_exactly_a_request_is_refused(old: str, new: str) -> None:
    with pytest.raises(ProofRefused):
        parse_request(request(20, 50).encode().decode().replace(old, new, 1).encode())


def test_a_request_is_bounded() -> None:
    with pytest.raises(ProofRefused) as caught:
        parse_request(bytes(REQUEST_LIMIT + 1))
    assert caught.value.code == "request_too_large"


@given(st.binary(max_size=200))
def test_reading_strange_requests_only_ever_refuses(data: bytes) -> None:
    with pytest.raises(ProofRefused):
        parse_request(data)


def test_every_continuation_passes() -> None:
    for old in range(51):
        last = LOG.checkpoint(old) if old else None
        for size in range(max(old, 1), 51):
            judge(request(old, size), last, 1)


def test_a_known_log_is_recognised_under_all_its_names() -> None:
    recognise(request(0, 5), KNOWN)
    recognise(request(0, 5), [TrustedKey(SIGNER.verifier.named(ORIGIN))])
    recognise(request(0, 5, origin=origin_of(LOG_ID, WORKSPACE, 2)), KNOWN)


@pytest.mark.parametrize(
    ("keys", "status", "code"),
    [
        ([], 404, "origin_unknown"),
        ([TrustedKey(OTHER_LOG.verifier)], 404, "origin_unknown"),
        ([TrustedKey(NEXT_SIGNER.verifier)], 403, "key_did_not_sign"),
        ([TrustedKey(seeded(SIGNER.verifier.name, 66).verifier)], 403, "key_did_not_sign"),
        ([TrustedKey(SIGNER.verifier.named(ORIGIN), 5)], 403, "signer_retired"),
    ],
)
def test_strangers_are_refused(keys: list[TrustedKey], status: int, code: str) -> None:
    with pytest.raises(WitnessRefused) as caught:
        recognise(request(0, 5), keys)
    assert (caught.value.status, caught.value.code) == (status, code)


def test_a_wrong_signature_is_refused() -> None:
    given = request(0, 5)
    line = given.note.signatures[0]
    forged = Request(0, (), given.checkpoint, Note(given.note.text, (type(line)(line.name, line.key_id, bytes(64)),)))
    with pytest.raises(WitnessRefused) as caught:
        recognise(forged, KNOWN)
    assert (caught.value.status, caught.value.code) == (403, "signature_invalid")


def test_an_old_size_above_the_checkpoint_is_a_bad_request() -> None:
    given = Request(6, (), LOG.checkpoint(5), LOG.note(size=5))
    with pytest.raises(WitnessRefused) as caught:
        recognise(given, KNOWN)
    assert caught.value.status == 400


@pytest.mark.parametrize(("old", "last"), [(0, 10), (5, 10), (20, 10), (5, 0)])
def test_a_proof_from_another_size_is_answered_with_the_size(old: int, last: int) -> None:
    answer = refused(request(old, 50), LOG.checkpoint(last) if last else None)
    assert (answer.status, answer.code, answer.size) == (409, "size_moved", last)


def test_a_smaller_tree_is_never_cosigned_after_a_larger_one() -> None:
    answer = refused(request(10, 20), LOG.checkpoint(30))
    assert (answer.status, answer.size) == (409, 30)


def test_two_histories_are_refused() -> None:
    last = LOG.checkpoint(20)
    answer = refused(request(20, 30, FORK), last)
    assert (answer.status, answer.code) == (422, "split_view")
    honest = request(20, 30)
    mixed = Request(20, honest.hashes, FORK.checkpoint(30), FORK.note(size=30))
    assert refused(mixed, last).status == 422
    same = refused(request(20, 20, FORK), last)
    assert (same.status, same.code, same.size) == (409, "split_view", 20)


def test_a_proof_that_is_cut_long_or_wrong_is_refused() -> None:
    honest, last = request(20, 30), LOG.checkpoint(20)
    for hashes in (
        (),
        honest.hashes[:-1],
        (*honest.hashes, bytes(32)),
        (bytes(32), *honest.hashes[1:]),
        honest.hashes[::-1],
    ):
        assert refused(Request(20, hashes, honest.checkpoint, honest.note), last).status == 422
    first = request(0, 5)
    assert refused(Request(0, (bytes(32),), first.checkpoint, first.note), None).status == 422


def test_a_restored_log_is_a_new_epoch_and_not_a_fork() -> None:
    second = origin_of(LOG_ID, WORKSPACE, 2)
    judge(request(0, 12, FORK, origin=second), None, 1)
    closed = refused(request(20, 30), LOG.checkpoint(20), newest=2)
    assert (closed.status, closed.code) == (403, "epoch_closed")
