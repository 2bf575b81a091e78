"""Data directories and receipts of the first version (commit 016371d) open, continue, pass fsck and verify.

`make.py` wrote the archive with the code of that commit. Nothing in it is ever made anew: its records keep the rules
they were written under.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from redkey.commands.actor import Actor
from redkey.commands.claims import BlockClaim, ClaimNext, ClaimTask, CompleteClaim, HeartbeatClaim, ReportProgress
from redkey.commands.decision import Refused
from redkey.commands.policies import RaiseRules, SetPolicy
from redkey.commands.registry import CreateRole
from redkey.commands.tasks import CreateTask
from redkey.commands.workflows import ApproveGate
from redkey.ledger import content
from redkey.ledger.checkpoint import log_name
from redkey.ledger.record import Record
from redkey.ledger.trust import TrustedKey, parse_trusted_keys
from redkey.ledger.verify import Policy, verify_receipt
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.readmodel.rows import entity
from redkey.readmodel.world_loading import load_world
from redkey.services.log_facts import read_log
from redkey.services.receipts import receipt_for
from redkey.services.signing import Signing
from redkey.stores.keys import SignerKeys
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.copying import take_backup
from redkey.wire.catalogue import catalogue
from redkey.wire.decode import decode
from redkey.wire.ids import event_id
from tests.first_version.archive import unpacked
from tests.harness.desk import CountedIds, ref_of
from tests.harness.office import Office
from tests.harness.workshop import CountedClock, checked

TOPIC = "1.0.1001"
# What has come since, or could not be written then.
NOT_THEN = {"workspace.rules_raised", "workspace.policy_set"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked(tmp_path)


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    clock = CountedClock()
    # A day later: leases have run out, and agents have been silent.
    clock.advance(86_400)
    with SqliteStore(folder / "data", clock, create=False) as store:
        yield store


def keys_of(folder: Path) -> tuple[TrustedKey, ...]:
    return tuple(parse_trusted_keys((folder / "log.pub").read_text()))


def receipts_of(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted((folder / "receipts").iterdir())]


def signing_of(store: SqliteStore) -> Signing:
    log = read_log(store)
    assert log is not None
    return Signing(store, SignerKeys(store.directory / "keys", log_name(log.log_id)))


def types(store: SqliteStore) -> Counter[str]:
    return Counter(decode(record.wire)["type"] for record in store.read(TOPIC, 0, 10_000))


def test_the_archive_holds_every_type_that_the_first_version_could_write(folder: Path, store: SqliteStore) -> None:
    recorded = set(types(store))
    assert recorded == {name.removesuffix(".json") for name, _ in receipts_of(folder)}
    assert len(recorded) == 51
    assert recorded <= set(catalogue()) - NOT_THEN


def test_fsck_finds_nothing_and_the_receipts_are_in_it(folder: Path) -> None:
    report = checked(folder / "data", receipts_of(folder))
    assert report.clean, report.faults
    assert report.figures["receipts"] == 51


def test_every_receipt_verifies(folder: Path) -> None:
    policy = Policy(keys=keys_of(folder))
    for name, document in receipts_of(folder):
        verdict = verify_receipt(document, policy)
        assert verdict.holds("integrity", "signed"), (name, verdict.findings)
        assert verdict.event is not None
        assert verdict.event.type == name.removesuffix(".json")


def test_a_changed_receipt_does_not_verify(folder: Path) -> None:
    """The check above can fail."""
    document = orjson.loads((folder / "receipts" / "task.complete.json").read_bytes())
    document["sequence"] += 1
    assert not verify_receipt(orjson.dumps(document), Policy(keys=keys_of(folder))).holds("integrity")


def test_rows_of_the_first_version_are_what_replay_gives_today(store: SqliteStore) -> None:
    assert rows_digest(store, TOPIC) == replay_digest(store, TOPIC)


def test_opening_raises_no_rules(store: SqliteStore) -> None:
    assert load_world(store, TOPIC).workspace.rules == 1
    row = store.row(TOPIC, "workspace", "")
    assert row is not None
    assert entity(row).rules == 1


def test_it_continues_and_passes_fsck(folder: Path, store: SqliteStore) -> None:
    before = store.head(TOPIC).sequence
    asyncio.run(_continue(store))
    signing = signing_of(store)
    signing.sign()
    assert entity(store.row(TOPIC, "workspace", "")).rules == 1  # type: ignore[arg-type]
    new = [decode(record.wire)["type"] for record in store.read(TOPIC, before, 10_000)]
    expected = {"task.lease_expired", "agent.lost", "task.lease_extended", "task.complete", "gate.approved"}
    assert expected <= set(new)
    last = store.read(TOPIC, store.head(TOPIC).sequence - 1, 1)[0]
    receipt = receipt_for(store, TOPIC, decode(last.wire)["wire_id"], signing, base_url="http://127.0.0.1:8700")
    store.close()
    verdict = verify_receipt(orjson.dumps(receipt), Policy(keys=keys_of(folder)))
    assert verdict.holds("integrity", "signed")
    report = checked(folder / "data", receipts_of(folder))
    assert report.clean, report.faults


def test_an_operator_raises_its_rules_and_what_is_new_works(folder: Path, store: SqliteStore) -> None:
    asyncio.run(_raise(store))
    signing_of(store).sign()
    row = store.row(TOPIC, "workspace", "")
    assert row is not None
    assert (entity(row).rules, entity(row).block_routes) == (2, {"ambiguity": ("role_writer",)})
    store.close()
    report = checked(folder / "data", receipts_of(folder))
    assert report.clean, report.faults


def test_its_keys_are_known_when_they_have_left_the_window(folder: Path) -> None:
    """The first version did not index requests by their keys: opening its directory does."""
    clock = CountedClock()
    clock.advance(2 * 86_400)
    with SqliteStore(folder / "data", clock, create=False) as store:
        keyed = [record for record in store.read(TOPIC, 0, 10_000) if b'"idem"' in record.wire]
        asyncio.run(_ask_late(store, keyed))
    report = checked(folder / "data", receipts_of(folder))
    assert report.clean, report.faults


def test_a_backup_of_it_is_taken_and_checked_as_it_is(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    take_backup(folder / "data", copy, "2026-10-01T00:00:00Z", with_keys=False)
    assert checked(copy).clean
    with closing(sqlite3.connect(copy / "redkey.db")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


async def _ask_late(store: SqliteStore, keyed: list[Record]) -> None:
    office = _office(store)
    await office.do(CreateRole("role_late"), idem="f" * 32, body="f" * 16)
    for record in (keyed[0], keyed[-1]):
        wire = decode(record.wire)
        with pytest.raises(Refused) as refused:
            await office.do(CreateRole("role_new"), idem=wire["payload"]["idem"], body=wire["payload"]["body"])
        assert refused.value.code == "idempotency_key_expired"
        assert refused.value.members == {"eventId": event_id(wire["wire_id"])}
    await office.coordinator.stop()


async def _raise(store: SqliteStore) -> None:
    office = _office(store)
    policy = SetPolicy({"ambiguity": ("role_writer",)})
    with pytest.raises(Refused) as refused:
        await office.do(policy)
    assert refused.value.code == "rules_too_old"
    with pytest.raises(Refused) as refused:
        await office.do(RaiseRules())
    assert refused.value.code == "insufficient_scope"
    operator = Actor(office.admin.workspace_id, office.admin.key_id, frozenset({"operator"}))
    await office.do(RaiseRules(), operator)
    await office.do(policy)
    await office.coordinator.stop()


def _office(store: SqliteStore) -> Office:
    row = store.row(TOPIC, "workspace", "")
    assert row is not None
    workspace_id = entity(row).workspace_id
    # Ids of another lane: none was drawn before.
    office = Office(store, CountedIds(9)).open(TOPIC, workspace_id)
    office.admin = Actor(workspace_id, "key_" + office.ids.ulid(), frozenset({"admin"}))
    return office


async def _continue(store: SqliteStore) -> None:
    """What was left open goes on: a late holder, a gate, a plan, a dependency, new work, a repeated request."""
    office = _office(store)
    office.coordinator.tick(TOPIC)
    world = office.coordinator.peek(TOPIC)
    kim = world.slugs["kim"]
    late = next(task.claim_id for task in world.tasks.values() if task.state == "working" and task.agent_id == kim)
    await office.do(HeartbeatClaim(late), office.key_of(kim))
    await office.do(CompleteClaim(late), office.key_of(kim))
    blocked = next(task for task in world.tasks.values() if task.state == "blocked")
    claim_id = await office.hold(blocked.blocked_by[0], kim)
    await office.complete(claim_id)
    assert world.tasks[blocked.task_id].state == "available"
    await office.do(ApproveGate(next(iter(world.gates))))
    agent_id = await office.agent("newcomer", "role_writer", "role_researcher")
    while True:
        claimed: Any = (await office.do(ClaimNext("queue_slow", agent_id))).first("task.claimed")
        if claimed is None:
            break
        await office.complete(claimed.wire["payload"]["claim_id"])
    assert not world.runs
    task_id = await office.task(queue_id="queue_slow")
    await office.do(ClaimTask(task_id, agent_id))
    await office.do(ClaimTask(task_id, kim))
    unheard = await office.do(ReportProgress(world.tasks[task_id].claim_id, 50))
    assert (unheard.records, (unheard.answer or {})["reason"]) == ([], "rules_too_old")
    await office.do(BlockClaim(world.tasks[task_id].claim_id, "ambiguity", ref_of("why")))
    with store.write(TOPIC) as unit:
        # The texts that the office named.
        unit.put_content(TOPIC, [content.body(text.encode()) for text in ("newcomer", task_id, "why")])
    await _ask_again(office)
    await office.coordinator.stop()


async def _ask_again(office: Office) -> None:
    """A request of the last day is answered from the records that it made then."""
    record = next(one for one in office.store.read(TOPIC, 0, 10_000) if b'"idem"' in one.wire)
    wire = decode(record.wire)
    payload, task_id = wire["payload"], wire["stream"]["stream_id"].split(":")[1]
    command = CreateTask(task_id, payload["queue_id"], payload["content_ref"])
    again = await office.do(command, idem=payload["idem"], body=payload["body"])
    assert again.repeated
    assert again.records[0].sequence == record.sequence
