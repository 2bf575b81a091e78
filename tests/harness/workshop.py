"""A workshop: a real data directory with recorded work, for tests that check, copy and break it.

Every command goes through the write path with its content; ids and times are counted, so that a run can be repeated.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.claims import AddArtifact, ClaimNext, CompleteClaim, FailClaim, StartClaim
from redkey.commands.registry import (
    CreateKey,
    CreateQueue,
    CreateRole,
    EraseContent,
    GrantRole,
    PriceCredits,
    RegisterAgent,
)
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.readmodel.world_loading import load_world
from redkey.reducers.world import SECOND, World
from redkey.services.acts import directly
from redkey.services.counting import count_up
from redkey.services.fsck.check import Fsck
from redkey.services.fsck.report import Report
from redkey.services.outcome import Outcome
from redkey.services.submission import Submission
from redkey.services.unit_of_work import TopicWork
from redkey.services.workspaces import Founding, begin_directly
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.inspection import Inspection
from tests.harness.desk import START, CountedIds

QUEUE = "queue_podcast"
ROLE = "role_researcher"
SECRET = b"a line that must be gone when it was erased"
LARGE = b"large " * 5000
STRUCTURE = {"task.created": 2, "task.complete": 3}


class CountedClock:
    """A clock that advances a millisecond at each reading."""

    def __init__(self) -> None:
        self._passed = 0

    def wall(self) -> int:
        return START + self._passed

    def monotonic(self) -> int:
        self._passed += SECOND // 1000
        return self._passed

    def advance(self, seconds: float) -> None:
        self._passed += int(seconds * SECOND)


class Workshop:
    """One data directory, and one workspace in it."""

    def __init__(self, directory: Path, lane: int = 0) -> None:
        self.directory, self.clock, self.ids = directory, CountedClock(), CountedIds(lane)
        self.store = SqliteStore(directory, self.clock)
        self.signing = open_signing(self.store)
        key_id = "key_" + self.ids.ulid()
        admin = Actor("", key_id, frozenset({"admin"}))
        key = CreateKey(key_id, "rk_testkey", ("admin",), secret_sha256="0" * 64)
        self.perform = directly(self.store)
        begun = begin_directly(self.store, self.ids, self.signing, Founding(founder=admin, key=key))
        self.topic, self.workspace_id = begun.topic, begun.workspace_id
        self.admin = Actor(begun.workspace_id, key_id, frozenset({"admin"}))
        self.world: World = load_world(self.store, self.topic)

    def __enter__(self) -> Workshop:
        return self

    def count(self) -> None:
        """Update the counters to the head, as a server does once a second."""
        with self.store.write(self.topic) as unit:
            while not count_up(unit, self.topic, []):
                pass

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def do(self, *commands: Any, contents: Iterable[Content] = ()) -> list[Outcome]:
        """Run commands in one unit with their content; return their outcomes."""
        with self.store.write(self.topic) as unit:
            if unit.head(self.topic).sequence != self.world.sequence:
                self.world = load_world(unit, self.topic)
            work = TopicWork(unit, self.topic, self.world, self.ids)
            work.run_due()
            bodies = tuple(contents)
            # The future is not used: each outcome is returned here.
            outcomes = [work.run(Submission(self.topic, self.admin, one, bodies, "", "", None)) for one in commands]  # type: ignore[arg-type]
            work.finish()
        return outcomes

    def document(self, text: str) -> Content:
        return content.document({"title": text}, self.ids.nonce())

    def furnish(self) -> None:
        """Create a queue, a role and an agent."""
        card = content.body(b'{"name":"researcher"}')
        self.agent_id = "agt_" + self.ids.ulid()
        self.do(
            CreateQueue(QUEUE, {}),
            CreateRole(ROLE),
            RegisterAgent(self.agent_id, "researcher", content.ref(card)),
            GrantRole(ROLE, self.agent_id),
            contents=[card],
        )

    def work(self, tasks: int, *, unfinished: int = 0) -> None:
        """Create and complete this many tasks, and leave some waiting."""
        for first in range(0, tasks + unfinished, 64):
            count = min(64, tasks + unfinished - first)
            bodies = [self.document(f"task {first + index}") for index in range(count)]
            create = [
                CreateTask("task_" + self.ids.ulid(), QUEUE, content.ref(body), roles=(ROLE,), outputs=("report",))
                for body in bodies
            ]
            self.do(*create, contents=bodies)
            done = min(count, max(0, tasks - first))
            claims = self.do(*[ClaimNext(QUEUE, self.agent_id) for _ in range(done)])
            self._finish([one.first("task.claimed") for one in claims])

    def _finish(self, claims: list[Any]) -> None:
        commands: list[Any] = []
        bodies = [self.document(f"report of {claim.sequence}") for claim in claims]
        for claim, body in zip(claims, bodies, strict=True):
            claim_id, artifact_id = claim.wire["payload"]["claim_id"], "art_" + self.ids.ulid()
            commands.append(StartClaim(claim_id))
            commands.append(
                AddArtifact(claim_id, artifact_id, "report", content.ref(body), body.sha256, len(body.data), "final")
            )
            commands.append(CompleteClaim(claim_id, (artifact_id,), cost_usd=0.25, duration_seconds=60))
        if commands:
            self.do(*commands, contents=bodies)

    def live_a_while(self) -> None:
        """Record everything that fsck checks: files, structure, erasure, failure, intermediate checkpoints."""
        self.furnish()
        self.signing.sign()
        self.work(70)
        prices = content.structure(STRUCTURE)
        self.do(PriceCredits(1, content.ref(prices)), contents=[prices])
        secret, large = content.body(SECRET), content.body(LARGE)
        self.do(
            CreateTask("task_" + self.ids.ulid(), QUEUE, content.ref(secret)),
            CreateTask("task_" + self.ids.ulid(), QUEUE, content.ref(large)),
            contents=[secret, large],
        )
        (claimed,) = self.do(ClaimNext(QUEUE, self.agent_id))
        claim = claimed.first("task.claimed")
        assert claim is not None
        self.do(FailClaim(claim.wire["payload"]["claim_id"], "error"))
        self.do(EraseContent(secret.sha256))
        self.signing.sign()
        self.count()
        self.clock.advance(1000)
        self.work(20, unfinished=5)
        self.signing.sign()
        self.count()


def _remove(folder: Path, owner: int) -> None:
    # A forked child has the same exit handlers; only the process that created the folder may remove it.
    if os.getpid() == owner:
        rmtree(folder, ignore_errors=True)


@cache
def _model() -> Path:
    """A data directory with recorded work, created once for each process that runs tests."""
    folder = Path(mkdtemp(prefix="redkey-workshop-"))
    atexit.register(_remove, folder, os.getpid())
    directory = folder / "data"
    with Workshop(directory) as workshop:
        workshop.live_a_while()
    return directory


def lived_in(directory: Path) -> Path:
    """A copy of a data directory with recorded work: about 800 records of one workspace, without a writer."""
    copytree(_model(), directory)
    return directory


def checked(directory: Path, documents: Iterable[tuple[str, bytes]] = (), only: tuple[str, ...] = ()) -> Report:
    """The findings of fsck for a data directory."""
    with Inspection(directory) as evidence:
        check = Fsck(evidence)
        check.hold_against(documents)
        return check.run(only)
