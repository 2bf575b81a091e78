"""Power cuts under a whole server: the disks that each moment of a recorded run may leave, judged by what it had said.

Whatever a reply named when it was written to a socket must be there: every event with an intact ledger around it, every
body under its hash, every agent and message of the bus; and the key that was shown must still open the workspace.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import msgspec

from redkey.errors import RedKeyError
from redkey.ledger.checkpoint import log_name
from redkey.services.fsck.check import Fsck
from redkey.services.keys import KeyRing
from redkey.services.log_facts import read_log
from redkey.services.signing import Signing
from redkey.stores.keys import FileSecrets, SignerKeys
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.inspection import Inspection
from tests.crash.disk import Disk, Drawn, Image, Only, Recipe
from tests.crash.judge import Wrong
from tests.crash.server_recording import Said, ServerHistory
from tests.history.ledger_file import read_ledger

_ROUNDS = 2000
# Every so many states fsck reads all of it, too.
_FSCK = 25


class Promised(msgspec.Struct):
    """What the server has said so far."""

    events: set[str] = msgspec.field(default_factory=set)
    contents: set[str] = msgspec.field(default_factory=set)
    talk: set[str] = msgspec.field(default_factory=set)

    def add(self, said: Said) -> None:
        self.events |= said.events
        self.contents |= said.contents
        self.talk |= said.talk

    @property
    def count(self) -> int:
        return len(self.events) + len(self.contents) + len(self.talk)


class ServerExaminer:
    """Judges the disks that a power cut may leave of one run of a server."""

    def __init__(self, history: ServerHistory, scratch: Path) -> None:
        self._history, self._scratch = history, scratch
        self._seen: set[tuple[bytes, int]] = set()

    def examine(self, states: int) -> int:
        """Judge moments all over the run, first with nothing kept that was not synced, then with drawn losses, until
        there are so many states; how many there were."""
        stride = max(1, 2 * len(self._history.steps) // states)
        rounds = 0
        while len(self._seen) < states and rounds < _ROUNDS:
            for moment, disk, promised in self._moments():
                if moment % stride == rounds // 2 % stride:
                    recipe: Recipe = Drawn(Random(f"{moment}:{rounds}")) if rounds % 2 else Only(())
                    self._look(disk.image(recipe), promised, f"moment {moment}, round {rounds}")
            rounds += 1
        return len(self._seen)

    def _moments(self) -> Iterator[tuple[int, Disk, Promised]]:
        disk, promised, moment = Disk(self._history.data), Promised(), 0
        for step in self._history.steps:
            if isinstance(step, Said):
                promised.add(step)
                if not step.events and not step.contents and not step.talk:
                    continue
            elif not any(True for _ in disk.follow([step])):
                continue
            moment += 1
            yield moment, disk, promised

    def _look(self, image: Image, promised: Promised, name: str) -> None:
        found = (image.digest, promised.count)
        if found in self._seen:
            return
        self._seen.add(found)
        data = self._scratch / "state"
        # The server made everything for its owner alone, and refuses keys that others may read.
        mask = os.umask(0o077)
        try:
            data.mkdir()
            image.write(data)
        finally:
            os.umask(mask)
        try:
            judge(data, promised, self._history.key, thorough=len(self._seen) % _FSCK == 0)
        except Wrong as wrong:
            raise Wrong(f"{wrong}\n  {name}") from wrong
        finally:
            shutil.rmtree(data)


def judge(data: Path, promised: Promised, key: str, *, thorough: bool) -> None:
    """Open what is left as a server does, and look for everything that was promised."""
    try:
        with SqliteStore(data) as store:
            if promised.events:
                _check_keys(store, data, key)
    except RedKeyError as refused:
        raise Wrong(f"the store does not open: {refused.message} [{refused.code}]") from refused
    if not promised.events:
        return
    ledger = read_ledger(data / "redkey.db")
    if ledger.findings:
        raise Wrong(f"the ledger is damaged: {ledger.findings[:3]}")
    there = {"evt_" + wire["wire_id"][5:] for wire in ledger.wires.values()}
    if lost := promised.events - there:
        raise Wrong(f"{len(lost)} events were shown and are lost, such as {min(lost)}")
    for digest in promised.contents:
        if not _has_body(data, ledger.topic, digest):
            raise Wrong(f"the content {digest} was acknowledged and is lost")
    if promised.talk and (lost := promised.talk - _talk_in(data / "bus" / "bus.db", promised.talk)):
        raise Wrong(f"the bus has told of {sorted(lost)[:3]}, and they are lost")
    if thorough:
        with Inspection(data) as evidence:
            report = Fsck(evidence).run()
        if not report.clean:
            raise Wrong(f"fsck names {report.faults[:3]}")


def _check_keys(store: SqliteStore, data: Path, key: str) -> None:
    """Whoever was shown an event has a key and was let in by it; and the log can go on signing."""
    log = read_log(store)
    if log is None:
        raise Wrong("the log has no id any more")
    Signing(store, SignerKeys(data / "keys", log_name(log.log_id)))
    keys = KeyRing(store, FileSecrets(data / "keys").issuing_secret(), time.monotonic)
    holder = keys.authenticate(key)
    if holder is None:
        raise Wrong("the first key is not known any more")
    if keys.text(holder.actor.key_id) != key:
        raise Wrong("the issuing secret is lost: a reply that shows a key could not be repeated")


def _talk_in(database: Path, names: set[str]) -> set[str]:
    """Those of the names that the log of the bus knows."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        log = b"\n".join(envelope for (envelope,) in connection.execute("SELECT envelope FROM record"))
        agents = {name for (name,) in connection.execute("SELECT id FROM agent")}
    finally:
        connection.close()
    return {name for name in names if name in agents or f'"{name}"'.encode() in log}


def _has_body(data: Path, topic: str, digest: str) -> bool:
    connection = sqlite3.connect(f"file:{data / 'redkey.db'}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT data FROM content WHERE sha256 = ?", (bytes.fromhex(digest),)).fetchall()
    finally:
        connection.close()
    for (body,) in rows:
        path = data / "content" / topic / digest
        found = body if body is not None else path.read_bytes() if path.exists() else b""
        if sha256(found).hexdigest() == digest:
            return True
    return False
