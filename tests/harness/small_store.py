"""A small store with one of everything, created by real commands through the coordinator, always with the same bytes.

Tasks, claims, artifacts, a run of a plan, a large body as a file, an erased one, two generations of keys, checkpoints,
a witness: all in as few records as possible, so that tests can flip every bit of it. It is copied while it is open,
when part of it is in the database and the last units are only in the log, and again after it was closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from redkey.commands.actor import Actor
from redkey.commands.claims import AddArtifact, ClaimNext, CompleteClaim, StartClaim
from redkey.commands.registry import CreateKey, CreateQueue, CreateRole, EraseContent, GrantRole, RegisterAgent
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.checkpoint import log_name, open_checkpoint
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE, VerifierKey
from redkey.ledger.signer import Signer
from redkey.plans.model import read_plan
from redkey.services.acts import directly
from redkey.services.log_facts import open_log
from redkey.services.planning import missing_roles, prepare, start_command
from redkey.services.signing import Signing
from redkey.services.workspaces import Founding, begin_directly
from redkey.stores.sqlite import SqliteStore
from tests.harness.desk import CountedIds
from tests.harness.office import Office
from tests.harness.runs import plan_of, step
from tests.harness.workshop import CountedClock

QUEUE, ROLE = "queue_work", "role_writer"
SECRET = b"a line that must be gone when it was erased"
LARGE = b"a body that is a file. " * 800


class SeededKeys:
    """Signing keys from counted seeds, so that the same store has the same signatures."""

    def __init__(self, name: str) -> None:
        self._name, self._made = name, 0
        self._kept: list[Signer] = []

    def signers(self, *, create: bool = True) -> list[Signer]:
        if not self._kept and create:
            self.add()
        return list(self._kept)

    def add(self) -> Signer:
        self._made += 1
        self._kept.append(Signer(self._name, Ed25519PrivateKey.from_private_bytes(self._made.to_bytes(32))))
        return self._kept[-1]

    def retire(self, key: VerifierKey) -> None:
        self._kept = [one for one in self._kept if one.verifier.public_key != key.public_key]


def small_stores(folder: Path) -> tuple[Path, Path]:
    """Two copies of the store: as a killed process leaves it, and after it was closed."""
    made, died, closed = folder / "made", folder / "died", folder / "closed"
    with SqliteStore(made, CountedClock()) as store:
        asyncio.run(live(store))
        copytree(made, died)
    copytree(made, closed)
    return died, closed


async def live(store: SqliteStore, done: Callable[[], None] = lambda: None) -> None:
    """Fill an empty store; `done` is called whenever something more is durable."""
    ids = CountedIds()
    log = open_log(store, bytes(range(16)))
    signing = Signing(store, SeededKeys(log_name(log.log_id)))
    key_id = "key_" + ids.ulid()
    key = CreateKey(key_id, "rk_testkey", ("admin",), secret_sha256="0" * 64)
    admin = Actor("", key_id, frozenset({"admin"}))
    begun = begin_directly(store, ids, signing, Founding(founder=admin, key=key))
    done()
    office = Office(store, ids).open(begun.topic, begun.workspace_id)
    office.coordinator.listen(lambda topic, records: done())
    await _live(office, signing)
    done()
    await office.coordinator.stop()


async def _live(office: Office, signing: Signing) -> None:
    card, secret, large = content.body(b'{"name":"writer"}'), content.body(SECRET), content.body(LARGE)
    ids, agent_id = office.ids, "agt_" + office.ids.ulid()
    await office.do(CreateQueue(QUEUE, {}))
    await office.do(CreateRole(ROLE))
    await office.do(RegisterAgent(agent_id, "writer", content.ref(card)), contents=(card,))
    await office.do(GrantRole(ROLE, agent_id))
    await office.do(CreateTask("task_" + ids.ulid(), QUEUE, content.ref(secret), roles=(ROLE,)), contents=(secret,))
    signing.sign()
    await _run_a_plan(office)
    old = signing.signers[0].verifier
    signing.add_signer()
    # The log is emptied here, so later units are only in the log.
    await office.do(EraseContent(secret.sha256))
    signing.retire_signer(old)
    claimed = (await office.do(ClaimNext(QUEUE, agent_id))).first("task.claimed")
    assert claimed is not None
    claim_id, artifact_id = claimed.wire["payload"]["claim_id"], "art_" + ids.ulid()
    await office.do(StartClaim(claim_id))
    artifact = AddArtifact(claim_id, artifact_id, "report", content.ref(large), large.sha256, len(large.data), "final")
    await office.do(artifact, contents=(large,))
    await office.do(CompleteClaim(claim_id, (artifact_id,), cost_usd=0.25, duration_seconds=60))
    signing.sign()
    _witness(office, signing)


def _witness(office: Office, signing: Signing) -> None:
    """A witness cosigns the last checkpoint."""
    witness = Signer("witness.example/w", Ed25519PrivateKey.from_private_bytes(bytes(32)), COSIGNATURE)
    ((_, note),) = office.store.checkpoints(office.topic, 1)
    line = cosign(witness, open_checkpoint(note)[1].text, 1_790_000_000).line()
    line_bytes, keys = line.encode(), [witness.verifier]
    directly(office.store)(office.topic, lambda unit: signing.add_cosignatures(unit, office.topic, line_bytes, keys))


async def _run_a_plan(office: Office) -> None:
    plan = plan_of(step("outline"), step("text", "outline"))
    prepared = prepare(plan, office.ids.nonce)
    roles, documents = missing_roles(read_plan(plan), office.coordinator.peek(office.topic).roles, office.ids.nonce)
    command = start_command(prepared, "wf_" + office.ids.ulid(), QUEUE, roles)
    await office.do(command, contents=(*prepared.contents, *documents))
