"""Receipts made from a store convince a stranger who has a key and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest

from redkey.ledger.content import body
from redkey.ledger.ports import Unit
from redkey.ledger.proof import parse_proof
from redkey.ledger.receipt import read_extra
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy, Verdict, verify_receipt, verify_record_proof
from redkey.readmodel.rows import void_row
from redkey.services.acts import directly
from redkey.services.receipts import named_content, proof_for, receipt_for
from redkey.services.signing import Signing
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from redkey.wire.decode import decode
from tests.harness.workshop import LARGE, SECRET, Workshop, lived_in

URL = "https://redkey.example"

T = TypeVar("T")


class Counter:
    """The desk that hands out receipts of one data directory."""

    def __init__(self, store: SqliteStore) -> None:
        self.store, self.topic = store, store.topics()[0]
        self.signing: Signing = open_signing(store)
        self.policy = Policy(keys=(TrustedKey(self.signing.signers[0].verifier),))

    def wire(self, sequence: int) -> dict[str, Any]:
        wire: dict[str, Any] = decode(self.store.read(self.topic, sequence - 1, 1)[0].wire)
        return wire

    def receipt(self, sequence: int, **options: Any) -> dict[str, Any]:
        wire_id = self.wire(sequence)["wire_id"]
        found = receipt_for(self.store, self.topic, wire_id, self.signing, base_url=URL, **options)
        assert found is not None
        return found

    def verdict(self, document: dict[str, Any]) -> Verdict:
        return verify_receipt(orjson.dumps(document), self.policy)

    def find(self, event: str) -> int:
        records = self.store.read(self.topic, 0, 10_000)
        return next(one.sequence for one in records if decode(one.wire)["type"] == event)


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    with SqliteStore(lived_in(tmp_path / "data")) as store:
        yield Counter(store)


@pytest.mark.parametrize("sequence", [1, 2, 255, 256, 257, 500, 657])
def test_a_receipt_of_any_record_verifies_with_the_key_alone(counter: Counter, sequence: int) -> None:
    verdict = counter.verdict(counter.receipt(sequence))
    assert verdict.holds("integrity", "signed"), verdict
    assert verdict.event is not None
    assert verdict.event.sequence == sequence
    assert verdict.effect is not None
    assert verdict.effect.status == "applied"


def test_an_event_is_found_by_its_public_id(counter: Counter) -> None:
    wire_id = counter.wire(20)["wire_id"]
    by_event = receipt_for(
        counter.store, counter.topic, "evt_" + wire_id.removeprefix("wire_"), counter.signing, base_url=URL
    )
    assert by_event == counter.receipt(20)
    assert by_event is not None
    assert by_event["verification"]["receiptUrl"] == f"{URL}/receipts/{by_event['eventId']}"


def test_an_event_that_is_not_there_has_no_receipt(counter: Counter) -> None:
    absent = "evt_01M3250V0000000000000ZZZZZ"
    assert receipt_for(counter.store, counter.topic, absent, counter.signing, base_url=URL) is None
    assert proof_for(counter.store, counter.topic, absent, counter.signing) is None


def test_a_record_that_is_not_covered_yet_is_signed_for_at_once(tmp_path: Path) -> None:
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        counter = Counter(workshop.store)
        head = workshop.store.head(workshop.topic).sequence
        assert workshop.store.checkpoints(workshop.topic, 1)[0][0] < head
        assert counter.verdict(counter.receipt(head)).holds("integrity", "signed")


class WithoutWaiting(directly):
    """Units that are opened at once or not at all, as if the time to wait for another writer had passed."""

    def __call__(self, topic: str, work: Callable[[Unit], T]) -> T:
        with self._store.write(topic, wait=False) as unit:
            return work(unit)


def test_a_receipt_is_pending_while_another_writer_is_in_the_way(tmp_path: Path) -> None:
    with Workshop(tmp_path / "data") as workshop, SqliteStore(tmp_path / "data") as other:
        workshop.furnish()
        counter = Counter(workshop.store)
        head = workshop.store.head(workshop.topic).sequence
        counter.signing.pass_through(WithoutWaiting(workshop.store))
        other.hold()
        pending = counter.receipt(head)
        other.release()
        assert pending["verification"]["status"] == "pending"
        assert "offline" not in pending
        assert counter.receipt(head)["verification"]["status"] == "verified"


def test_the_short_receipt_says_what_is_proven_and_carries_no_proof(counter: Counter) -> None:
    short, whole = counter.receipt(30, offline=False), counter.receipt(30)
    assert whole.pop("offline")
    assert short == whole


def test_content_goes_along_when_it_is_asked_for_and_still_there(counter: Counter) -> None:
    records = counter.store.read(counter.topic, 0, 10_000)
    named = {sha256: one.sequence for one in records for sha256 in named_content(decode(one.wire)["payload"])}
    large = counter.receipt(named[body(LARGE).sha256], content=True)
    assert len(large["offline"]["content"]) == 1
    assert counter.verdict(large).holds("integrity", "signed")
    created = min(one.sequence for one in records if body(SECRET).sha256 in named_content(decode(one.wire)["payload"]))
    erased = counter.receipt(created, content=True)
    assert "content" not in erased["offline"]
    assert counter.verdict(erased).holds("integrity", "signed")


def test_a_body_that_is_too_large_for_a_receipt_stays_where_it_is(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redkey.services.receipts._CONTENT_BYTES", len(LARGE) - 1)
    records = counter.store.read(counter.topic, 0, 10_000)
    sequence = next(one.sequence for one in records if body(LARGE).sha256.encode() in one.wire)
    document = counter.receipt(sequence, content=True)
    assert "content" not in document["offline"]
    assert counter.verdict(document).holds("integrity", "signed")


def test_a_void_record_says_so_and_why(counter: Counter) -> None:
    with counter.store.write(counter.topic) as unit:
        unit.put_rows(counter.topic, [void_row(40, "claim_not_current")])
    document = counter.receipt(40)
    assert document["effect"] == {"status": "void", "reason": "claim_not_current"}
    assert counter.verdict(document).holds("integrity", "signed")
    document["effect"] = {"status": "applied"}
    assert not counter.verdict(document).holds("signed")


def test_the_proof_alone_tells_its_record(counter: Counter) -> None:
    data = proof_for(counter.store, counter.topic, counter.wire(300)["wire_id"], counter.signing)
    assert data is not None
    proof = parse_proof(data)
    assert proof.index == 299
    assert verify_record_proof(proof, *read_extra(proof.extra), counter.policy).holds("integrity", "signed")


def test_a_receipt_by_a_rotated_log_is_refused_under_the_retired_key(counter: Counter) -> None:
    old = counter.signing.signers[0].verifier
    before = counter.receipt(100)
    counter.signing.add_signer()
    counter.signing.retire_signer(old)
    after = counter.receipt(100)
    assert [term.get("retired") is not None for term in after["offline"]["signers"]] == [True, False]
    assert counter.verdict(before).holds("integrity", "signed")
    assert not counter.verdict(after).holds("signed")
    new = Policy(keys=(TrustedKey(counter.signing.signers[0].verifier),))
    assert verify_receipt(orjson.dumps(after), new).holds("integrity", "signed")


def test_a_receipt_is_small(counter: Counter) -> None:
    sequence = counter.find("task.claimed")
    document = counter.receipt(sequence)
    size = len(orjson.dumps(document)) - len(orjson.dumps(document["offline"]["wire"]))
    assert size < 2200
