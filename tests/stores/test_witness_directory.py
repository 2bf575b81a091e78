"""A witness remembers: sizes only rise, through restarts and races, and what looks like a fork is kept as evidence."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from redkey.errors import KeyRefused, LedgerError, WitnessRefused
from redkey.ledger.checkpoint import origin_of
from redkey.ledger.cosignature import cosigned_at
from redkey.ledger.trust import TrustedKey
from redkey.ledger.witness import Request
from redkey.stores import witness as witness_module
from redkey.stores.witness import WitnessDirectory, create_witness
from tests.harness.small_log import LOG_ID, ORIGIN, OTHER_LOG, SIGNER, WITNESSES, WORKSPACE, SmallLog

LOG = SmallLog(60)
FORK = SmallLog(60, seed="fork")


def request(old: int, size: int, log: SmallLog = LOG, origin: str = ORIGIN) -> Request:
    hashes = tuple(log.tree.consistency_proof(old, size))
    return Request(old, hashes, log.checkpoint(size, origin), log.note(size=size, origin=origin))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    create_witness(tmp_path / "w", "witness.example/w")
    WitnessDirectory(tmp_path / "w", lambda: 0).trust([TrustedKey(SIGNER.verifier)])
    return tmp_path / "w"


@pytest.fixture
def witness(directory: Path) -> WitnessDirectory:
    return WitnessDirectory(directory, lambda: 1_778_177_800)


def refused(witness: WitnessDirectory, given: Request) -> WitnessRefused:
    with pytest.raises(WitnessRefused) as caught:
        witness.add_checkpoint(given)
    return caught.value


def test_a_witness_has_a_key_of_its_own(tmp_path: Path) -> None:
    key = create_witness(tmp_path / "w", "witness.example/w")
    assert stat.S_IMODE((tmp_path / "w" / "witness.key").stat().st_mode) == 0o600
    assert WitnessDirectory(tmp_path / "w", lambda: 0).verifier == key
    with pytest.raises(KeyRefused, match="exists already"):
        create_witness(tmp_path / "w", "witness.example/w")
    (tmp_path / "w" / "witness.key").chmod(0o644)
    with pytest.raises(KeyRefused, match="0644"):
        WitnessDirectory(tmp_path / "w", lambda: 0)


def test_a_log_is_cosigned_from_its_first_checkpoint_on(witness: WitnessDirectory) -> None:
    for old, size in ((0, 1), (1, 1), (1, 20), (20, 60)):
        given = request(old, size)
        line = witness.add_checkpoint(given)
        assert cosigned_at(witness.verifier, line, given.note.text) == 1_778_177_800
    assert [(one.origin, one.size) for one in witness.seen()] == [(ORIGIN, 60)]


def test_what_was_cosigned_is_remembered_by_the_next_process(witness: WitnessDirectory, directory: Path) -> None:
    witness.add_checkpoint(request(0, 20))
    again = WitnessDirectory(directory, lambda: 5)
    assert refused(again, request(0, 30)).size == 20
    again.add_checkpoint(request(20, 30))
    assert refused(witness, request(20, 40)).size == 30


def test_a_second_history_is_refused_and_kept_as_evidence(witness: WitnessDirectory) -> None:
    witness.add_checkpoint(request(0, 20))
    assert refused(witness, request(20, 30, FORK)).status == 422
    assert refused(witness, request(20, 20, FORK)).status == 409
    assert refused(witness, request(20, 20, FORK)).status == 409
    kept = witness.evidence()
    assert len(kept) == 2
    for path in kept:
        text = path.read_text()
        assert request(0, 20).note.encode().decode() in text
        assert ORIGIN in text.partition("cosigned before:")[0]
    witness.add_checkpoint(request(20, 30))


def test_evidence_is_bounded(witness: WitnessDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness_module, "EVIDENCE_LIMIT", 3)
    witness.add_checkpoint(request(0, 20))
    for size in range(21, 30):
        refused(witness, request(20, size, FORK))
    assert len(witness.evidence()) == 3


def test_a_restore_is_told_apart_from_a_fork(witness: WitnessDirectory) -> None:
    second = origin_of(LOG_ID, WORKSPACE, 2)
    witness.add_checkpoint(request(0, 20))
    witness.add_checkpoint(request(0, 15, FORK, second))
    witness.add_checkpoint(request(15, 25, FORK, second))
    assert refused(witness, request(20, 30)).code == "epoch_closed"
    assert witness.evidence() == []
    assert [(one.origin, one.size) for one in witness.seen()] == [(ORIGIN, 20), (second, 25)]


def test_workspaces_of_a_log_do_not_mix(witness: WitnessDirectory) -> None:
    other = origin_of(LOG_ID, "wk_01J0000000000000000000000X", 1)
    witness.add_checkpoint(request(0, 20))
    witness.add_checkpoint(request(0, 30, FORK, other))
    witness.add_checkpoint(request(20, 40))
    assert {one.size for one in witness.seen()} == {30, 40}


def test_nothing_is_kept_of_strangers(directory: Path, witness: WitnessDirectory) -> None:
    log = SmallLog(5)
    note = log.note(OTHER_LOG, origin=f"{OTHER_LOG.verifier.name}/w/e1")
    stranger = Request(0, (), log.checkpoint(origin=f"{OTHER_LOG.verifier.name}/w/e1"), note)
    assert refused(witness, stranger).status == 404
    assert not (directory / "seen").exists()
    witness.add_checkpoint(stranger, [TrustedKey(OTHER_LOG.verifier)])
    assert [one.size for one in witness.seen()] == [5]


def test_trusted_keys_add_up_and_only_logs_are_trusted(witness: WitnessDirectory) -> None:
    witness.trust([TrustedKey(OTHER_LOG.verifier)])
    witness.trust([TrustedKey(OTHER_LOG.verifier)])
    assert witness.trusted() == [TrustedKey(SIGNER.verifier), TrustedKey(OTHER_LOG.verifier)]
    with pytest.raises(KeyRefused, match="a witness's key"):
        witness.trust([TrustedKey(WITNESSES[0].verifier)])


def test_what_is_cosigned_is_durable_before_the_cosignature_leaves(
    witness: WitnessDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.add_checkpoint(request(0, 20))

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(witness_module, "replace_file", full)
    with pytest.raises(OSError, match="no space"):
        witness.add_checkpoint(request(20, 30))
    monkeypatch.undo()
    last = witness.last(ORIGIN)
    assert last
    assert last[0].size == 20


def test_a_damaged_memory_is_said_and_nothing_is_cosigned(witness: WitnessDirectory, directory: Path) -> None:
    witness.add_checkpoint(request(0, 20))
    (path,) = directory.glob("seen/*/e1")
    path.write_bytes(b"torn")
    with pytest.raises(LedgerError) as caught:
        witness.add_checkpoint(request(20, 30))
    assert caught.value.code == "witness_damaged"


def test_of_many_racing_requests_for_one_log_each_size_is_judged_after_the_one_before(directory: Path) -> None:
    """Threads with their own file locks represent processes: each opens the directory separately."""
    start = threading.Barrier(8)
    cosigned: list[int] = []
    failures: list[BaseException] = []

    def submit(sizes: range) -> None:
        mine = WitnessDirectory(directory, lambda: 1)
        start.wait()
        for size in sizes:
            try:
                while True:
                    last = mine.last(ORIGIN)
                    old = last[0].size if last else 0
                    if old >= size:
                        break
                    try:
                        mine.add_checkpoint(request(old, size))
                    except WitnessRefused as moved:
                        if moved.code != "size_moved":
                            raise
                        continue
                    cosigned.append(size)
            except BaseException as broken:
                failures.append(broken)

    threads = [threading.Thread(target=submit, args=(range(1 + offset, 61, 3),)) for offset in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(cosigned) == len(set(cosigned)), "a size was cosigned twice"
    assert max(cosigned) == 60
