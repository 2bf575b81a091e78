"""Build `first-version.tar.xz`: a data directory and receipts written by the first version, commit 016371d.

    python tests/first_version/make.py

The script checks the commit out into a temporary folder and runs itself there with that code. It writes every event
type that the first version could write. `workspace.rules_raised` is missing: the first version had no rules to raise.
The signing keys in the archive protect nothing but this fixture.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

COMMIT = "016371d"
ARCHIVE = Path(__file__).resolve().parent / "first-version.tar.xz"
ROOT = ARCHIVE.parents[2]


def main() -> None:
    with TemporaryDirectory(prefix="redkey-first-version-") as folder:
        checkout, out = Path(folder) / "checkout", Path(folder) / "out"
        subprocess.run(["git", "worktree", "add", "--detach", str(checkout), COMMIT], cwd=ROOT, check=True)
        try:
            paths = os.pathsep.join([str(checkout / "src"), str(checkout)])
            command = [sys.executable, str(Path(__file__).resolve()), "--write", str(out)]
            subprocess.run(command, cwd=checkout, env={**os.environ, "PYTHONPATH": paths}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], cwd=ROOT, check=True)
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            archive.add(out, "first-version", filter=_anonymous)
    print(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size} bytes")


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave the owner and the time out: they say nothing about the first version."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def write(out: Path) -> None:
    """Write the data directory and the receipts. Runs inside the checkout."""
    import orjson

    from redkey.services.backup import begin_epoch
    from redkey.services.receipts import receipt_for
    from redkey.stores.sqlite import SqliteStore
    from redkey.stores.sqlite.copying import read_backup, take_backup, unpacked
    from tests.harness.workshop import CountedClock, Workshop, open_signing

    out.mkdir()
    with Workshop(out / "lost") as workshop:
        _live(workshop)
        topic = workshop.topic
    take_backup(out / "lost", out / "backup", "2026-09-21T14:13:20Z", with_keys=True)
    manifest, clock = read_backup(out / "backup"), CountedClock()
    clock.advance(3600)
    with unpacked(out / "backup", manifest, out / "data") as aside, SqliteStore(aside, clock, create=False) as store:
        begin_epoch(store, None, keys=True)
    (out / "receipts").mkdir()
    with SqliteStore(out / "data", clock, create=False) as store:
        signing, seen = open_signing(store), set()
        signing.sign()
        for record in store.read(topic, 0, 10_000):
            wire = orjson.loads(record.wire)
            if wire["type"] in seen:
                continue
            # One receipt for each type that the ledger holds.
            seen.add(wire["type"])
            found = receipt_for(store, topic, wire["wire_id"], signing, base_url="http://127.0.0.1:8700", content=True)
            (out / "receipts" / f"{wire['type']}.json").write_bytes(orjson.dumps(found) + b"\n")
        (out / "log.pub").write_text("".join(f"{one.verifier}\n" for one in signing.signers))
        print(f"{store.head(topic).sequence} records, {len(seen)} types")
    for left in ("lost", "backup"):
        subprocess.run(["rm", "-r", str(out / left)], check=True)


def _live(shop: Any) -> None:
    """One workspace that meets every event type."""
    from redkey.commands.registry import CreateQueue, UpdateQueue

    shop.furnish()
    shop.do(CreateQueue("queue_slow", {"lease_seconds": 60, "lease_losses": 2, "max_live_claims": 3}))
    shop.do(UpdateQueue("queue_slow", {"max_attempts": 2}))
    shop.work(4, unfinished=2)
    _registry(shop)
    shop.signing.sign()
    _tasks(shop)
    _runs(shop)
    _content(shop)
    _log_facts(shop)
    shop.work(6, unfinished=3)
    _left_open(shop)
    shop.signing.sign()


def _act(shop: Any, command: Any, agent_id: str = "", contents: Any = (), idem: str = "") -> Any:
    """One command, by the admin or with the agent's own key."""
    from redkey.commands.caller import Caller

    from redkey.services.submission import Submission
    from redkey.services.unit_of_work import TopicWork

    caller = shop.admin
    if agent_id:
        caller = Caller(shop.workspace_id, "key_" + agent_id[4:], frozenset({"agent"}), agent_id)
    body = idem[:16]
    with shop.store.write() as unit:
        work = TopicWork(unit, shop.topic, shop.world, shop.ids)
        work.run_due()
        nobody: Any = None
        outcome = work.run(Submission(shop.topic, caller, command, tuple(contents), idem, body, nobody))
        work.finish()
    return outcome


def _agent(shop: Any, slug: str, *roles: str, capabilities: tuple[str, ...] = ()) -> str:
    from redkey.commands.registry import CreateRole, GrantRole, RegisterAgent
    from redkey.ledger import content

    card = content.document({"name": slug}, shop.ids.nonce())
    agent_id = "agt_" + shop.ids.ulid()
    _act(shop, RegisterAgent(agent_id, slug, content.ref(card), capabilities), contents=[card])
    for role in roles:
        if role not in shop.world.roles:
            _act(shop, CreateRole(role))
        _act(shop, GrantRole(role, agent_id))
    return agent_id


def _task(shop: Any, title: str, **more: Any) -> str:
    from redkey.commands.tasks import CreateTask
    from redkey.ledger import content

    text, task_id = shop.document(title), "task_" + shop.ids.ulid()
    idem = sha256(title.encode()).hexdigest()[:32]
    command = CreateTask(task_id, more.pop("queue_id", "queue_slow"), content.ref(text), **more)
    _act(shop, command, contents=[text], idem=idem)
    return task_id


def _hold(shop: Any, task_id: str, agent_id: str, lease: int = 60) -> str:
    from redkey.commands.claims import ClaimTask

    won = _act(shop, ClaimTask(task_id, agent_id, lease), agent_id).first("task.claimed")
    assert won is not None
    claim_id: str = won.wire["payload"]["claim_id"]
    return claim_id


def _registry(shop: Any) -> None:
    from redkey.commands.registry import (
        CreateKey,
        DeactivateAgent,
        GrantCredits,
        HeartbeatAgent,
        PriceCredits,
        ReadMessage,
        RevokeKey,
        RevokeRole,
        SendMessage,
        UpdateAgent,
    )
    from redkey.ledger import content

    idle = _agent(shop, "idle", "role_pm", capabilities=tuple(f"skill_{number}" for number in range(11)))
    _act(shop, UpdateAgent(idle, slug="idler", capabilities=("search",)))
    _act(shop, HeartbeatAgent(idle, 3, 1), idle)
    _act(shop, RevokeRole("role_pm", idle))
    _act(shop, DeactivateAgent(idle))
    key_id = "key_" + shop.ids.ulid()
    _act(shop, CreateKey(key_id, "rk_second", ("read",), secret_sha256="1" * 64))
    _act(shop, RevokeKey(key_id))
    prices = content.structure({"task.created": 2, "task.complete": 3})
    _act(shop, PriceCredits(1, content.ref(prices)), contents=[prices])
    _act(shop, GrantCredits(100_000))
    for number, to in enumerate(("human", f"agent:{idle}")):
        text, message_id = shop.document(f"mail {number}"), "msg_" + shop.ids.ulid()
        _act(shop, SendMessage(message_id, to, 1, "info", content.ref(text)), contents=[text])
        if not number:
            _act(shop, ReadMessage(message_id))


def _tasks(shop: Any) -> None:
    """Every move of a task, by agents with keys of their own."""
    from redkey.commands.claims import (
        AddArtifact,
        BlockClaim,
        ClaimTask,
        CompleteClaim,
        FailClaim,
        HeartbeatClaim,
        PlanClaim,
        ReleaseClaim,
        StartClaim,
    )
    from redkey.commands.tasks import AddMessage, CancelTask, RaiseConcern, RetryTask, UnblockTask
    from redkey.ledger import content

    ada, bob = _agent(shop, "ada", "role_writer", "role_pm"), _agent(shop, "bob", "role_writer")
    _agent(shop, "boss", "role_supervisor")
    first = _task(shop, "first", roles=("role_writer",), outputs=("report",))
    second = _task(shop, "second", waits_for=(first,), deadline_seconds=5000)
    claim = _hold(shop, first, ada)
    _act(shop, ClaimTask(first, bob), bob)
    _act(shop, ClaimTask(second, bob), bob)
    _act(shop, StartClaim(claim), ada)
    shop.clock.advance(40)
    _act(shop, HeartbeatClaim(claim), ada)
    # The lease runs out and its last holder comes back.
    shop.clock.advance(70)
    _task(shop, "while the lease runs out")
    _act(shop, HeartbeatClaim(claim), ada)
    body, plan, text = shop.document("report"), shop.document("plan"), shop.document("text")
    _act(shop, PlanClaim(claim, content.ref(plan)), ada, [plan])
    _act(shop, AddMessage(first, "msg_" + shop.ids.ulid(), "human", content.ref(text)), contents=[text])
    _act(shop, RaiseConcern(first, "msg_" + shop.ids.ulid(), "minor", content.ref(text)), contents=[text])
    report = "art_" + shop.ids.ulid()
    artifact = AddArtifact(claim, report, "report", content.ref(body), body.sha256, len(body.data))
    _act(shop, artifact, ada, [body])
    _act(shop, CompleteClaim(claim, (report,), cost_usd=0.25, duration_seconds=60), ada)
    _act(shop, ReleaseClaim(_hold(shop, second, bob)), bob)
    why = shop.document("why")
    _act(shop, BlockClaim(_hold(shop, second, bob), "ambiguity", content.ref(why)), bob, [why])
    _act(shop, UnblockTask(second, content.ref(why)), contents=[why])
    _act(shop, FailClaim(_hold(shop, second, ada), "error", content.ref(why)), ada, [why])
    _act(shop, CancelTask(second))
    _act(shop, RetryTask(second))
    third = _task(shop, "third")
    # Two leases are lost, which is one too many in this queue; meanwhile agents fall silent.
    for turn in range(2):
        _hold(shop, third, ada, 30)
        shop.clock.advance(100)
        _task(shop, f"while nobody answers {turn}")
    shop.clock.advance(300)
    _task(shop, "after a silence")


def _runs(shop: Any) -> None:
    """Runs that complete, fail, are paused, resumed and cancelled; gates that are approved and rejected."""
    from redkey.commands.caller import Caller

    from redkey.commands.claims import CompleteClaim, FailClaim
    from redkey.commands.workflows import (
        ApproveGate,
        CancelWorkflow,
        PauseWorkflow,
        PublishDefinition,
        RejectGate,
        ResumeWorkflow,
    )
    from redkey.plans.model import read_plan
    from redkey.services.definitions import create_draft
    from redkey.services.planning import missing_roles, prepare, start_command
    from tests.harness.runs import plan_of, step

    eve = _agent(shop, "eve", "role_writer")

    def start(plan: Any, **more: Any) -> str:
        prepared = prepare(plan, shop.ids.nonce)
        roles, documents = missing_roles(read_plan(plan), shop.world.roles, shop.ids.nonce)
        run = "wf_" + shop.ids.ulid()
        command = start_command(prepared, run, "queue_slow", roles, **more)
        _act(shop, command, contents=[*prepared.contents, *documents])
        return run

    def open_task(run: str) -> str:
        return next(one.task_id for one in shop.world.tasks.values() if one.workflow_id == run and not one.ended_at)

    gated = plan_of(step("draft", approvalGate=True), step("text", "draft"), attempts=2)
    run = start(gated)
    approver = Caller(shop.workspace_id, "key_" + shop.ids.ulid(), frozenset({"admin"}))
    for verdict in (RejectGate, ApproveGate):
        _act(shop, CompleteClaim(_hold(shop, open_task(run), eve)), eve)
        gate_id, admin = next(iter(shop.world.gates)), shop.admin
        shop.admin = approver
        _act(shop, verdict(gate_id))
        shop.admin = admin
    _act(shop, CompleteClaim(_hold(shop, open_task(run), eve)), eve)
    assert run not in shop.world.runs
    run = start(plan_of(step("draft"), step("text", "draft")))
    _act(shop, PauseWorkflow(run))
    _act(shop, ResumeWorkflow(run))
    _act(shop, FailClaim(_hold(shop, open_task(run), eve), "error"), eve)
    assert run not in shop.world.runs
    _act(shop, CancelWorkflow(start(plan_of(step("draft"), step("text", "draft")))))
    definition_id, prepared = "def_" + shop.ids.ulid(), prepare(gated, shop.ids.nonce)
    create_draft(shop.store, shop.topic, definition_id, gated, "")
    publish = PublishDefinition(definition_id, 1, prepared.structure_ref, prepared.content_ref, 1)
    _act(shop, publish, contents=prepared.contents)
    # This one stays open: a later version goes on with it.
    run = start(gated, definition_id=definition_id, version=1)
    _act(shop, CompleteClaim(_hold(shop, open_task(run), eve)), eve)


def _content(shop: Any) -> None:
    """A large body, and one that is erased."""
    from redkey.commands.registry import EraseContent
    from redkey.commands.tasks import CreateTask
    from redkey.ledger import content

    for data in (b"large " * 5000, b"a line that must be gone when it was erased"):
        body = content.body(data)
        _act(shop, CreateTask("task_" + shop.ids.ulid(), "queue_slow", content.ref(body)), contents=[body])
    _act(shop, EraseContent(body.sha256))


def _log_facts(shop: Any) -> None:
    """A second signer, the first one retired, and a checkpoint that was anchored."""
    from redkey.commands.draft import Draft, derived_id
    from redkey.ledger.note import encode_base64
    from redkey.readmodel.rows import load_world
    from redkey.services.log_facts import note_facts
    from redkey.wire.decode import decode

    old = shop.signing.signers[0].verifier
    shop.signing.add_signer()
    shop.signing.retire_signer(old)
    tree, where = shop.store.tree(shop.topic), f"workspace:{shop.workspace_id}"
    payload = {
        "network": "testnet",
        "topic_id": "0.0.8830671",
        "sequence_number": 7,
        "tree_size": tree.size,
        "root": encode_base64(tree.root()),
    }
    wire_id = derived_id(shop.workspace_id, "checkpoint.anchored", str(tree.size))
    with shop.store.write() as unit:
        note_facts(unit, shop.topic, [Draft("checkpoint.anchored", where, payload, where, wire_id=wire_id)])
    shop.world = load_world(shop.store, shop.topic, decode)


def _left_open(shop: Any) -> None:
    """Work in every state that is not an end: held, blocked, waiting, expired."""
    from redkey.commands.claims import BlockClaim, StartClaim
    from redkey.ledger import content

    kim = _agent(shop, "kim", "role_writer")
    _act(shop, StartClaim(_hold(shop, _task(shop, "held"), kim, 3600)), kim)
    blocker, why = _task(shop, "blocker"), shop.document("it waits")
    _task(shop, "waiting", waits_for=(blocker,))
    claim = _hold(shop, _task(shop, "blocked"), kim)
    _act(shop, BlockClaim(claim, "dependency", content.ref(why), (blocker,)), kim, [why])
    _hold(shop, _task(shop, "expired"), kim, 30)
    shop.clock.advance(45)
    _task(shop, "the last one", priority="urgent")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]))
    else:
        main()
