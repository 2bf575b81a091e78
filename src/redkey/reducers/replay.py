"""Replay: ordered wires of any number of streams in, the exact state of tasks, artifacts and projects out.

Wires are taken in the order given, which is the ledger's: `stream_seq` is a producer's hint and decides
nothing. The same wire id a second time is void. Streams do not touch each other, so what becomes of one does
not depend on how others are woven in between; claim wires on agents' streams are the agents' claim history.
Wires must be valid by schema (`redkey.wire.validate`); what is only void by state is kept with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

import msgspec

from redkey.reducers.artifact import Artifact
from redkey.reducers.attempt import TaskEvent
from redkey.reducers.project import Project, Task, projects_of, tasks_of
from redkey.reducers.stream import Attempt, Terms, apply, begin
from redkey.wire.envelope import AnyWire, Wire
from redkey.wire.events import (
    AnyPayload,
    ArtifactReady,
    TaskCreated,
    WorkspaceCreated,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)
from redkey.wire.ids import parse_stream

DUPLICATE_WIRE = "duplicate_wire"
_CLAIM_WIRES = {
    "task.claim_attempted": "attempted",
    "task.claim_missed": "missed",
    "task.claim_rejected": "rejected",
}

# The outputs that a task.created requires by a structure it names; None when nobody has that structure.
Outputs = Callable[[TaskCreated], Iterable[str] | None]


class Void(msgspec.Struct, frozen=True, gc=False):
    """A wire that is kept and changes nothing, and why."""

    wire_id: str
    type: str
    stream_id: str
    reason: str


class Replayed:
    """The state after some wires; `apply` folds one more."""

    def __init__(self, outputs: Outputs | None = None) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.artifacts: dict[str, Artifact] = {}
        self.claims: dict[str, dict[str, int]] = {}
        self.void: list[Void] = []
        self.wires = 0
        # Wires of streams that no reducer of this package folds: queues, roles, workflows, workspaces.
        self.others = 0
        # What the workspace decided, by its own wires.
        self.terms = Terms()
        self._outputs = outputs
        self._seen: set[str] = set()

    def apply(self, wire: AnyWire) -> str | None:
        """Fold one wire; None when it applied (or is about something else), else why it is void."""
        self.wires += 1
        wire_id = wire.wire_id
        reason = DUPLICATE_WIRE if wire_id in self._seen else self._fold(wire)
        self._seen.add(wire_id)
        if reason is not None:
            self.void.append(Void(wire_id, wire.type, wire.stream.stream_id, reason))
        return reason

    def _fold(self, wire: AnyWire) -> str | None:
        stream_id, payload = wire.stream.stream_id, wire.payload
        attempt = self.attempts.get(stream_id)
        if attempt is not None:
            reason = apply(attempt, cast("Wire[TaskEvent]", wire), terms=self.terms)
            if reason is None and type(payload) is ArtifactReady:
                self._version(attempt, payload.artifact_id)
            return reason
        stream = parse_stream(stream_id)
        if stream.kind != "task":
            self._beside(wire.type, stream.kind, stream.subject)
            self._decide(payload)
            return None
        attempt = begin(stream.subject, stream.attempt)
        # The schemas let only these types stand on the stream of a task.
        reason = apply(attempt, cast("Wire[TaskEvent]", wire), terms=self.terms)
        if reason is None:
            # Only what applied is remembered: a stream that never began takes no room.
            self.attempts[stream_id] = attempt
            if attempt.outputs is None and self._outputs is not None and isinstance(payload, TaskCreated):
                required = self._outputs(payload)
                attempt.outputs = None if required is None else tuple(required)
        return reason

    def _decide(self, payload: AnyPayload) -> None:
        """Note what the workspace decides for its attempts."""
        if type(payload) is WorkspaceCreated or type(payload) is WorkspaceRulesRaised:
            self.terms.rules = payload.rules
        elif type(payload) is WorkspacePolicySet and payload.unverified_outputs is not None:
            self.terms.unverified_outputs = payload.unverified_outputs

    def _version(self, attempt: Attempt, artifact_id: str) -> None:
        version = attempt.artifacts[artifact_id]
        known = self.artifacts.get(artifact_id)
        if known is None:
            self.artifacts[artifact_id] = Artifact(artifact_id, [version])
        else:
            known.versions.append(version)

    def _beside(self, event: str, kind: str, subject: str) -> None:
        outcome = _CLAIM_WIRES.get(event)
        if kind != "agent" or outcome is None:
            self.others += 1
            return
        counts = self.claims.setdefault(subject, dict.fromkeys(_CLAIM_WIRES.values(), 0))
        counts[outcome] += 1

    def tasks(self) -> list[Task]:
        """Every task, by id."""
        return tasks_of(self.attempts.values())

    def projects(self) -> list[Project]:
        """Every context that has tasks, by id."""
        return projects_of(self.tasks())

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON; the same wires give the same canonical bytes."""
        tasks = self.tasks()
        reasons: dict[str, int] = {}
        for void in self.void:
            reasons[void.reason] = reasons.get(void.reason, 0) + 1
        return {
            "counts": {
                "wires": self.wires,
                "applied": self.wires - self.others - len(self.void),
                "void": len(self.void),
                "others": self.others,
                "reasons": reasons,
            },
            "void": msgspec.to_builtins(self.void),
            "tasks": {task.task_id: task.as_json() for task in tasks},
            "artifacts": {key: artifact.as_json() for key, artifact in sorted(self.artifacts.items())},
            "projects": {project.context_id: project.as_json() for project in projects_of(tasks)},
            "claims": {agent_id: dict(counts) for agent_id, counts in sorted(self.claims.items())},
        }


def replay(wires: Iterable[AnyWire], *, places: int | None = None, outputs: Outputs | None = None) -> Replayed:
    """The state after all wires, or after the first `places` of them."""
    replayed = Replayed(outputs)
    for wire in wires if places is None else islice(wires, places):
        replayed.apply(wire)
    return replayed


def replay_stream(wires: Iterable[AnyWire], stream_id: str, *, places: int | None = None) -> Replayed:
    """The state of one stream alone, from wires that may belong to any: its own first `places`, or all of them."""
    return replay((wire for wire in wires if wire.stream.stream_id == stream_id), places=places)
