"""Signing: who signs is on the ledger, sizes never fall, rotation ends cleanly, and two processes agree."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from redkey.commands.registry import CreateRole
from redkey.errors import KeyRefused, LedgerError, ProofRefused, RedKeyError, StoreFailed, WriterBusy
from redkey.ledger.checkpoint import Checkpoint, log_name, open_checkpoint
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE, VerifierKey, verifies
from redkey.ledger.ports import SequencedStore, Unit
from redkey.ledger.signer import Signer
from redkey.services.coordinator import Coordinator
from redkey.services.log_facts import open_log, signer_terms
from redkey.services.signing import Signing
from redkey.services.signing_times import SigningSchedule, SignsInUnits
from redkey.stores.clock import SystemClock
from redkey.stores.keys import SignerKeys
from redkey.stores.memory import MemoryStore
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from redkey.wire.decode import decode
from tests.harness.workshop import Workshop, checked, lived_in


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        yield workshop


def signers_of(store: SequencedStore, topic: str) -> set[bytes]:
    """The key ids that signed the newest checkpoint, after each was verified against the keys on the ledger."""
    (size, data), *_ = store.checkpoints(topic, 1)
    checkpoint, note = open_checkpoint(data)
    assert checkpoint.size == size
    assert checkpoint.root == store.tree(topic).root(size)
    return {line.key_id for line in note.signatures}


def key_ids(signing: Signing, origin: str) -> set[bytes]:
    return {one.verifier.named(origin).key_id for one in signing.signers}


def origin_of(store: SequencedStore, topic: str) -> str:
    return open_checkpoint(store.checkpoints(topic, 1)[0][1])[0].origin


def facts(workshop: Workshop) -> list[tuple[str, int]]:
    """The facts of the log on the ledger, with their places."""
    records = workshop.store.read(workshop.topic, 0, 10_000)
    found = ((decode(record.wire)["type"], record.sequence) for record in records)
    return [one for one in found if one[0].startswith(("signer.", "ledger."))]


def test_a_key_is_on_the_ledger_before_it_signs(workshop: Workshop) -> None:
    first = workshop.store.checkpoints(workshop.topic, 100)[-1]
    (added,) = facts(workshop)
    assert added == ("signer.added", 3)
    assert first[0] >= 3


def test_the_head_is_signed_under_the_origin_of_its_workspace(workshop: Workshop) -> None:
    workshop.signing.sign()
    (size, data), *_ = workshop.store.checkpoints(workshop.topic, 1)
    checkpoint, note = open_checkpoint(data)
    log = workshop.signing.log
    assert checkpoint.origin == f"redkey/{log.log_id}/{workshop.workspace_id}/e1"
    assert size == checkpoint.size == workshop.store.head(workshop.topic).sequence
    assert checkpoint.root == workshop.store.tree(workshop.topic).root()
    (line,) = note.signatures
    assert verifies(workshop.signing.signers[0].verifier.named(checkpoint.origin), line, note.text)
    assert (workshop.directory / "checkpoints" / workshop.topic).read_bytes() == data


def test_what_is_signed_already_is_not_signed_again(workshop: Workshop) -> None:
    workshop.signing.sign()
    before = workshop.store.checkpoints(workshop.topic, 100)
    workshop.signing.sign()
    assert workshop.store.checkpoints(workshop.topic, 100) == before


def test_a_topic_without_a_workspace_is_not_signed(workshop: Workshop) -> None:
    other = workshop.store.create_topic()
    workshop.signing.sign()
    assert workshop.store.checkpoints(other, 1) == []


def test_a_history_that_contradicts_what_was_signed_is_not_signed(workshop: Workshop) -> None:
    workshop.signing.sign()
    (size, data), *_ = workshop.store.checkpoints(workshop.topic, 1)
    lines = data.split(b"\n")
    lines[2] = b"A" * 43 + b"="
    workshop.work(1)
    with workshop.store.write(workshop.topic) as unit:
        unit.put_checkpoint(workshop.topic, size, b"\n".join(lines))
    with pytest.raises(LedgerError) as refused:
        workshop.signing.sign()
    assert refused.value.code == "checkpoint_contradicted"


# Rotation.


def test_while_keys_are_rotated_both_sign(workshop: Workshop) -> None:
    old = workshop.signing.signers[0].verifier
    new = workshop.signing.add_signer()
    assert [one.verifier for one in workshop.signing.signers] == [old, new]
    origin = origin_of(workshop.store, workshop.topic)
    assert signers_of(workshop.store, workshop.topic) == {old.named(origin).key_id, new.named(origin).key_id}
    assert [event for event, _ in facts(workshop)] == ["signer.added", "signer.added"]


def test_a_retired_key_signs_nothing_from_its_retirement_on(workshop: Workshop) -> None:
    old = workshop.signing.signers[0].verifier
    new = workshop.signing.add_signer()
    workshop.signing.retire_signer(old)
    event, sequence = facts(workshop)[-1]
    assert event == "signer.retired"
    assert decode(workshop.store.read(workshop.topic, sequence - 1, 1)[0].wire)["payload"]["tree_size"] == sequence
    assert signers_of(workshop.store, workshop.topic) == {new.named(origin_of(workshop.store, workshop.topic)).key_id}
    terms = signer_terms(workshop.store, workshop.topic, old.name)
    assert [(term.key, term.retired) for term in terms] == [(str(old), sequence), (str(new), None)]
    assert not (workshop.directory / "keys" / "signer-0001.key").exists()


def test_the_last_key_cannot_be_retired(workshop: Workshop) -> None:
    with pytest.raises(KeyRefused) as refused:
        workshop.signing.retire_signer(workshop.signing.signers[0].verifier)
    assert refused.value.code == "key_last"
    with pytest.raises(KeyRefused) as refused:
        workshop.signing.retire_signer(Signer.generate("redkey/x").verifier)
    assert refused.value.code == "key_unknown"


def test_another_process_sees_a_rotation_before_it_signs(workshop: Workshop) -> None:
    other = open_signing(workshop.store)
    old = workshop.signing.signers[0].verifier
    workshop.signing.add_signer()
    workshop.signing.retire_signer(old)
    workshop.work(1)
    other.sign()
    assert [one.verifier for one in other.signers] == [one.verifier for one in workshop.signing.signers]
    assert len(signers_of(workshop.store, workshop.topic)) == 1
    assert len(facts(workshop)) == 3


def test_a_rotation_that_died_before_the_secret_was_deleted_is_finished_at_the_next_start(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = workshop.signing.signers[0].verifier
    new = workshop.signing.add_signer()

    def die(self: SignerKeys, key: VerifierKey) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SignerKeys, "retire", die)
        with pytest.raises(KeyboardInterrupt):
            workshop.signing.retire_signer(old)
    assert (workshop.directory / "keys" / "signer-0001.key").exists()
    again = open_signing(workshop.store)
    assert [one.verifier for one in again.signers] == [new]
    assert not (workshop.directory / "keys" / "signer-0001.key").exists()


def test_a_key_whose_file_was_made_before_the_process_died_signs_at_the_next_start(workshop: Workshop) -> None:
    SignerKeys(workshop.directory / "keys", log_name(workshop.signing.log.log_id)).add()
    again = open_signing(workshop.store)
    again.sign()
    workshop.work(1)
    again.sign()
    assert len(again.signers) == len(signers_of(workshop.store, workshop.topic)) == 2


def test_a_lost_secret_is_never_replaced_in_silence(tmp_path: Path) -> None:
    directory = lived_in(tmp_path / "data")
    shutil.rmtree(directory / "keys")
    with SqliteStore(directory) as store:
        for _ in range(2):
            with pytest.raises(KeyRefused) as refused:
                open_signing(store)
            assert refused.value.code == "key_lost"
            assert not list((directory / "keys").glob("signer-*"))


def test_one_of_two_lost_secrets_is_told(workshop: Workshop) -> None:
    workshop.signing.add_signer()
    (workshop.directory / "keys" / "signer-0001.key").unlink()
    (workshop.directory / "keys" / "signer-0001.pub").unlink()
    with pytest.raises(KeyRefused) as refused:
        open_signing(workshop.store)
    assert refused.value.code == "key_lost"


def test_signing_needs_a_log(tmp_path: Path) -> None:
    with pytest.raises(LedgerError) as refused:
        Signing(MemoryStore(SystemClock()), SignerKeys(tmp_path, "redkey/x"))
    assert refused.value.code == "log_unknown"


def test_a_store_becomes_a_log_once(tmp_path: Path) -> None:
    store = MemoryStore(SystemClock())
    first = open_log(store, b"0123456789abcdef")
    assert open_log(store, b"another 16 bytes") == first
    assert (len(first.log_id), first.epoch) == (24, 1)


# Witnesses.


def cosigned(workshop: Workshop, answer: bytes, witness: Signer) -> Checkpoint:
    keys = [witness.verifier]
    topic, signing = workshop.topic, workshop.signing
    return workshop.perform(topic, lambda unit: signing.add_cosignatures(unit, topic, answer, keys))


def test_a_cosignature_is_kept_with_its_checkpoint_and_used_by_later_receipts(workshop: Workshop) -> None:
    witness = Signer.generate("witness.example/w", COSIGNATURE)
    workshop.signing.sign()
    (size, data), *_ = workshop.store.checkpoints(workshop.topic, 1)
    answer = cosign(witness, open_checkpoint(data)[1].text, 1_790_000_000).line().encode()
    workshop.work(1)
    workshop.signing.sign()
    kept = cosigned(workshop, answer, witness)
    assert kept.size == size
    covering = workshop.signing.cover(workshop.topic, size)
    assert covering is not None
    assert witness.verifier.key_id in {line.key_id for line in open_checkpoint(covering)[1].signatures}
    newest = workshop.signing.cover(workshop.topic, workshop.store.head(workshop.topic).sequence)
    assert newest == workshop.store.checkpoints(workshop.topic, 1)[0][1]


def test_a_cosignature_that_comes_many_checkpoints_later_is_kept_with_its_own(workshop: Workshop) -> None:
    witness = Signer.generate("witness.example/w", COSIGNATURE)
    workshop.signing.sign()
    ((size, data),) = workshop.store.checkpoints(workshop.topic, 1)
    for number in range(20):
        workshop.do(CreateRole(f"role_{number}"))
        workshop.signing.sign()
    answer = cosign(witness, open_checkpoint(data)[1].text, 1_790_000_000).line().encode()
    assert cosigned(workshop, answer, witness).size == size
    kept = dict(workshop.store.checkpoints(workshop.topic, 100))
    assert [size for size, note in kept.items() if answer.strip() in note] == [size]


def test_a_cosignature_of_something_else_is_refused(workshop: Workshop) -> None:
    workshop.signing.sign()
    witness = Signer.generate("witness.example/w", COSIGNATURE)
    answer = cosign(witness, b"redkey/other\n1\nAAAA\n", 1_790_000_000).line().encode()
    with pytest.raises(ProofRefused) as refused:
        cosigned(workshop, answer, witness)
    assert refused.value.code == "cosignature_unknown"


# When.


class Turns:
    """A coordinator over the workshop's store, which tells whenever an act has ended."""

    def __init__(self, workshop: Workshop) -> None:
        self._coordinator = Coordinator(workshop.store, workshop.ids, on_fatal=lambda cause: None)
        self.ended = asyncio.Event()
        # What acts fail with in place of being done.
        self.failures: list[RedKeyError] = []

    async def act(self, topic: str, work: Callable[[Unit], None]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        await self._coordinator.act(topic, work)
        self.ended.set()


def scheduled(workshop: Workshop, **options: Any) -> tuple[Turns, SigningSchedule, list[RedKeyError]]:
    turns, failures = Turns(workshop), list[RedKeyError]()
    return turns, SigningSchedule(workshop.signing, turns.act, on_failure=failures.append, **options), failures


def head_is_signed(workshop: Workshop) -> bool:
    return workshop.store.checkpoints(workshop.topic, 1)[0][0] == workshop.store.head(workshop.topic).sequence


def test_what_is_recorded_is_signed_after_a_while(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, _ = scheduled(workshop, seconds=0.01)
        (outcome,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, outcome.records)
        assert not head_is_signed(workshop)
        await asyncio.wait_for(turns.ended.wait(), 60)
        assert head_is_signed(workshop)

    asyncio.run(run())


def test_many_records_are_signed_at_once(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, _ = scheduled(workshop, seconds=1000, records=2)
        for _ in range(2):
            (outcome,) = workshop.do(_another_role())
            schedule.heard(workshop.topic, outcome.records)
        await asyncio.wait_for(turns.ended.wait(), 60)
        assert head_is_signed(workshop)

    asyncio.run(run())


def test_what_is_recorded_while_a_checkpoint_is_signed_is_signed_next(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, _ = scheduled(workshop, seconds=1000, records=1)
        (first,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, first.records)
        while not turns.ended.is_set():
            # Each one is too late for the checkpoint that is on its way.
            (outcome,) = workshop.do(_another_role())
            schedule.heard(workshop.topic, outcome.records)
            await asyncio.sleep(0)
        turns.ended.clear()
        while not head_is_signed(workshop):
            await asyncio.wait_for(turns.ended.wait(), 60)
            turns.ended.clear()

    asyncio.run(run())


def test_a_busy_writer_is_waited_for(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, failures = scheduled(workshop, seconds=0.001)
        turns.failures = [WriterBusy(), WriterBusy()]
        (outcome,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, outcome.records)
        await asyncio.wait_for(turns.ended.wait(), 60)
        assert head_is_signed(workshop)
        assert not failures

    asyncio.run(run())


def test_a_failure_is_told_and_a_stop_signs_what_is_left(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, failures = scheduled(workshop, seconds=1000)
        (outcome,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, outcome.records)
        turns.failures = [StoreFailed("the disk is gone")]
        await schedule.stop()
        assert [one.code for one in failures] == ["store_failed"]
        schedule.heard(workshop.topic, outcome.records)
        await schedule.stop()
        assert head_is_signed(workshop)

    asyncio.run(run())


def test_a_record_is_covered_at_once_when_a_receipt_needs_it(workshop: Workshop) -> None:
    workshop.work(1)
    head = workshop.store.head(workshop.topic).sequence
    note = workshop.signing.cover(workshop.topic, head)
    assert note is not None
    assert open_checkpoint(note)[0].size == head


def test_a_thread_that_needs_a_checkpoint_gets_it_by_the_coordinator(workshop: Workshop) -> None:
    async def run() -> None:
        workshop.work(1)
        head = workshop.store.head(workshop.topic).sequence
        coordinator = Coordinator(workshop.store, workshop.ids, on_fatal=lambda cause: None)
        acts = 0
        real = coordinator.act

        async def counted(topic: str, work: Callable[[Unit], Any]) -> Any:
            nonlocal acts
            acts += 1
            return await real(topic, work)

        coordinator.act = counted  # type: ignore[method-assign]
        workshop.signing.pass_through(coordinator.act_from_thread(asyncio.get_running_loop()))
        note = await asyncio.to_thread(workshop.signing.cover, workshop.topic, head)
        assert note is not None
        assert open_checkpoint(note)[0].size == head
        assert acts == 1

    asyncio.run(run())


# In the units of commands.


async def _record(workshop: Workshop, coordinator: Coordinator, times: int) -> list[int]:
    """Record something so often, and after each time the size of the last checkpoint."""
    sizes = []
    for _ in range(times):
        await coordinator.submit(workshop.topic, workshop.admin, _another_role())
        found = workshop.store.checkpoints(workshop.topic, 1)
        sizes.append(found[0][0] if found else 0)
    return sizes


def test_the_unit_that_passes_a_second_or_enough_records_signs_itself(workshop: Workshop) -> None:
    async def run() -> None:
        store, signing = workshop.store, workshop.signing
        signing.sign([workshop.topic])
        head = store.head(workshop.topic).sequence

        def coordinator(**options: Any) -> Coordinator:
            sign = SignsInUnits(signing, **options)
            return Coordinator(store, workshop.ids, on_fatal=lambda cause: None, sign=sign)

        # No second has passed since the last checkpoint, and few records.
        assert await _record(workshop, coordinator(seconds=1000, records=1000), 2) == [head, head]
        assert await _record(workshop, coordinator(seconds=1000, records=3), 3) == [head + 3, head + 3, head + 3]
        assert await _record(workshop, coordinator(seconds=0, records=1000), 2) == [head + 6, head + 7]
        assert open_checkpoint(store.checkpoints(workshop.topic, 1)[0][1])[0].root == store.tree(workshop.topic).root()

    asyncio.run(run())


def test_a_unit_looks_whether_another_server_has_signed_since(workshop: Workshop) -> None:
    async def run() -> None:
        signing = workshop.signing
        sign = SignsInUnits(signing, seconds=1000, records=2)
        coordinator = Coordinator(workshop.store, workshop.ids, on_fatal=lambda cause: None, sign=sign)
        (first,) = await _record(workshop, coordinator, 1)
        head = workshop.store.head(workshop.topic).sequence
        await _record(workshop, coordinator, 1)
        # As another server would.
        signing.sign([workshop.topic])
        assert await _record(workshop, coordinator, 1) == [head + 1]
        assert first <= head

    asyncio.run(run())


def test_a_unit_that_cannot_sign_is_recorded_all_the_same(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        def refuse(unit: Unit, topic: str) -> None:
            raise KeyRefused("the secret is gone", code="key_lost")

        monkeypatch.setattr(workshop.signing, "sign_along", refuse)
        sign = SignsInUnits(workshop.signing, seconds=0)
        coordinator = Coordinator(workshop.store, workshop.ids, on_fatal=lambda cause: None, sign=sign)
        before = workshop.store.head(workshop.topic).sequence
        await _record(workshop, coordinator, 2)
        assert workshop.store.head(workshop.topic).sequence == before + 2

    asyncio.run(run())


def test_what_a_unit_has_signed_is_not_signed_again_and_the_rest_waits_for_its_second(workshop: Workshop) -> None:
    async def run() -> None:
        turns, schedule, _ = scheduled(workshop, seconds=0.05)
        (first,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, first.records)
        workshop.signing.sign([workshop.topic])
        signed = workshop.store.head(workshop.topic).sequence
        (second,) = workshop.do(_another_role())
        schedule.heard(workshop.topic, second.records)
        # The first time it finds the first record signed; the second record has a time of its own.
        await asyncio.wait_for(turns.ended.wait(), 60)
        assert head_is_signed(workshop)
        assert [size for size, _ in workshop.store.checkpoints(workshop.topic, 3)][:2] == [signed + 1, signed]

    asyncio.run(run())


_numbers = count(1)


def _another_role() -> CreateRole:
    return CreateRole(f"role_r{next(_numbers)}")


# Several processes.


def _hammer(directory: str, rounds: int, lane: int) -> None:
    """Append facts and sign, as a second server on the same directory does."""
    from redkey.commands.draft import Draft
    from redkey.services.log_facts import note_facts
    from redkey.wire.events import CreditsGranted
    from redkey.wire.ids import ulid

    with SqliteStore(directory) as store:
        signing, topic = open_signing(store), store.topics()[0]
        for number in range(rounds):
            with store.write(topic) as unit:
                workspace_id = decode(unit.read(topic, 0, 1)[0].wire)["stream"]["stream_id"]
                wire_id = "wire_" + ulid(1_790_000_000_000, (lane << 40 | number).to_bytes(10))
                payload = CreditsGranted(amount=1, unit="credit")
                note_facts(unit, topic, [Draft(payload, workspace_id, workspace_id, wire_id=wire_id)])
            signing.sign()


def test_processes_that_sign_the_same_log_agree(tmp_path: Path) -> None:
    directory = lived_in(tmp_path / "data")
    rounds = 25
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_hammer, args=(str(directory), rounds, lane)) for lane in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    report = checked(directory)
    assert report.clean, report.faults
    with SqliteStore(directory) as store:
        sizes = [size for size, _ in store.checkpoints(store.topics()[0], 1000)]
        assert sizes == sorted(set(sizes), reverse=True)
        assert sizes[0] == store.head(store.topics()[0]).sequence
        assert len(signer_terms(store, store.topics()[0], "redkey/x")) == 1
