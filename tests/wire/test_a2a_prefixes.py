"""Every prefix of a simulated ledger can be projected, and a snapshot equals what subscribers were sent, folded."""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec
import pytest
from a2a.types import StreamResponse
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings

from redkey.readmodel.rows import void_key
from redkey.stores.memory import MemoryStore
from redkey.wire import a2a
from redkey.wire.a2a import A2ATask, project, snapshot
from tests.harness.desk import HandClock
from tests.harness.replays import Replayed
from tests.reducers.test_properties import Wire, sequences
from tests.simulation.run import Run
from tests.wire.a2a_folding import fold, like_the_snapshot

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
SEEDS = 200 if LONG else 2
PARTS = [
    {"kind": "text", "text": "The second one", "mediaType": "text/plain"},
    {"kind": "artifact_ref", "artifactId": "art_1"},
    {"kind": "file_ref", "uri": "https://example.org/a", "sha256": "0" * 64, "name": "a"},
    {"kind": "data", "data": {"depth": 2}},
]
# What the API keeps beside each type of wire.
DOCUMENTS: dict[str, dict[str, Any]] = {
    "task.created": {"title": "Review", "description": "All of it", "input": {"depth": 3}},
    "task.blocked": {"reason": "Two specs disagree", "suggestedResolution": "Say which one holds"},
    "task.unblocked": {"answer": "The newer one"},
    "task.failed": {"reason": "The tests do not pass"},
    "task.complete": {"output": {"verdict": "good"}, "summary": "Reviewed."},
    "artifact.ready": {"name": "report", "mediaType": "text/markdown"},
    "message.added": {"parts": PARTS},
}


class Followed:
    """All tasks of a ledger: the projection of each, and a client's view of its stream."""

    def __init__(self, erased: bool) -> None:
        self._erased = erased
        self._documents: dict[str, dict[str, Any]] = {}
        self._tasks: dict[str, A2ATask | None] = {}
        self._seen: dict[str, dict[str, Any]] = {}
        self.objects = self.unchanged = 0

    def content(self, ref: Any) -> dict[str, Any] | None:
        return None if self._erased else self._documents.get(ref["sha256"])

    def take(self, wire: Wire) -> None:
        for name, value in wire["payload"].items():
            if name.endswith("_ref") and value is not None and wire["type"] in DOCUMENTS:
                # Wires of a simulation may name the same content; it is what it was first.
                self._documents.setdefault(value["sha256"], DOCUMENTS[wire["type"]])
        kind, subject = wire["stream"]["stream_id"].split(":")[:2]
        if kind != "task":
            return
        before = self._tasks.get(subject)
        task, sent = project(before, wire, self.content)
        if before is not None and a2a.cannot_change(before, wire["type"]):
            assert (task, sent) == (before, [])
            self.unchanged += 1
        self._tasks[subject] = task
        for found in sent:
            self._seen[subject] = fold(self._seen.get(subject), found)
            self.objects += 1
        if task is not None:
            now = snapshot(task, self.content)
            ParseDict(now, StreamResponse(), ignore_unknown_fields=False)
            like_the_snapshot(self._seen[subject], now["task"])


def follow(seed: int) -> None:
    """Check every prefix of a simulated ledger, with content and without."""
    run = Run(seed)
    run.go()
    store = MemoryStore(HandClock(), run.disk)
    for topic in store.topics():
        ledgers, after = (Followed(False), Followed(True)), 0
        while records := store.read(topic, after):
            after = records[-1].sequence
            for record in records:
                if store.row(topic, "void", void_key(record.sequence)) is None:
                    for followed in ledgers:
                        followed.take(json.loads(record.wire))
        assert all(followed.objects and followed.unchanged for followed in ledgers)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_prefix_of_a_simulated_ledger_projects(seed: int) -> None:
    follow(seed)


def _untold(so_far: A2ATask, rule: Any, wire: Wire, at: str | None, after: Any) -> tuple[A2ATask, bool]:
    return after(so_far, rule, wire, at)[0], False


def _forgotten(so_far: A2ATask, rule: Any, wire: Wire, at: str | None, after: Any) -> tuple[A2ATask, bool]:
    task, tells = after(so_far, rule, wire, at)
    return msgspec.structs.replace(task, history=task.history[:1]), tells


def test_a_skipped_wire_that_matters_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: wires of any type are skipped."""
    monkeypatch.setattr(a2a, "cannot_change", lambda task, event: True)
    with pytest.raises(AssertionError):
        follow(0)


@pytest.mark.parametrize("bug", [_untold, _forgotten])
def test_a_planted_bug_is_caught(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bugs: a status is not sent; the history drops the message of a status."""
    after = a2a._after
    monkeypatch.setattr(a2a, "_after", lambda *given: bug(*given, after))
    with pytest.raises(AssertionError):
        follow(0)


@settings(max_examples=2000 if LONG else 60, deadline=None)
@given(sequences())
def test_every_prefix_of_any_wires_projects(wires: list[Wire]) -> None:
    for erased in (False, True):
        replayed, followed = Replayed(), Followed(erased)
        for wire in wires:
            if replayed.apply(wire) is None:
                followed.take(wire)
